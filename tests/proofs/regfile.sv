// The register file against the register map: a model beside it, made of what rtl/registers.def says about each DW.
// prove regfile by abc-induction 1
module regfile (
    input logic        clk_i,
    input logic        rst_i,
    input logic        access_i,
    input logic [9:0]  index_i,
    input logic [3:0]  enable_i,
    input logic [31:0] wdata_i,
    input logic [peach2_regs_pkg::INTERRUPT_COUNT*peach2_regs_pkg::INTERRUPT_RO_BITS-1:0] interrupt_ro_i,
    input logic [peach2_regs_pkg::DMAC_COUNT*peach2_regs_pkg::DMAC_RO_BITS-1:0]           dmac_ro_i,
    input logic [peach2_regs_pkg::COUNTER_COUNT*peach2_regs_pkg::COUNTER_RO_BITS-1:0]     counter_ro_i
);
    localparam int unsigned CHIP_BITS = peach2_regs_pkg::CHIP_COUNT * peach2_regs_pkg::CHIP_RW_BITS;
    localparam int unsigned ROUTE_BITS = peach2_regs_pkg::ROUTE_COUNT * peach2_regs_pkg::ROUTE_RW_BITS;
    localparam int unsigned OFFSET_BITS = peach2_regs_pkg::OFFSET_COUNT * peach2_regs_pkg::OFFSET_RW_BITS;
    localparam int unsigned INTERRUPT_BITS = peach2_regs_pkg::INTERRUPT_COUNT * peach2_regs_pkg::INTERRUPT_RW_BITS;
    localparam int unsigned DMAC_BITS = peach2_regs_pkg::DMAC_COUNT * peach2_regs_pkg::DMAC_RW_BITS;
    localparam int unsigned CHANNELS = peach2_regs_pkg::DMAC_COUNT;
    localparam int unsigned RAISE = (peach2_regs_pkg::INTERRUPT_BASE + peach2_regs_pkg::INTERRUPT_RAISE_OFFSET) / 4;
    localparam int unsigned CLEAR = (peach2_regs_pkg::INTERRUPT_BASE + peach2_regs_pkg::INTERRUPT_CLEAR_OFFSET) / 4;
    localparam int unsigned CONTROL = (peach2_regs_pkg::DMAC_BASE + peach2_regs_pkg::DMAC_CONTROL_OFFSET) / 4;

    logic [31:0]               rdata_o;
    logic                      mapped_o, idle_o;
    logic [CHIP_BITS-1:0]      chip_rw_o;
    logic [ROUTE_BITS-1:0]     route_rw_o;
    logic [OFFSET_BITS-1:0]    offset_rw_o;
    logic [INTERRUPT_BITS-1:0] interrupt_rw_o;
    logic [DMAC_BITS-1:0]      dmac_rw_o;
    peach2_regs_pkg::interrupt_pulse_t interrupt_pulse_o;
    logic [CHANNELS-1:0]       dmac_pulse_o;

    peach2_regfile dut (.*);

    // All registers in the order of the map, DW 0 in the lowest bits.
    logic [CHIP_BITS+ROUTE_BITS+OFFSET_BITS+INTERRUPT_BITS+DMAC_BITS-1:0] written;
    logic [$bits(interrupt_ro_i)+$bits(dmac_ro_i)+$bits(counter_ro_i)-1:0] given;
    assign written = {dmac_rw_o, interrupt_rw_o, offset_rw_o, route_rw_o, chip_rw_o};
    assign given = {counter_ro_i, dmac_ro_i, interrupt_ro_i};

    localparam int unsigned RW = register_map_pkg::RW_COUNT;
    localparam int unsigned RO = register_map_pkg::RO_COUNT;
    localparam int unsigned FIXED = register_map_pkg::FIXED_COUNT;

    if ($bits(written) != 32 * RW || $bits(given) != 32 * RO) begin : gen_illegal
        $error("regfile: the ports do not fit registers.def");
    end

    logic [31:0] enabled;   // bits written
    logic        write;
    // One DW that software may write, chosen freely.
    (* anyconst *) logic [7:0] watched;
    logic [9:0]   watched_index;
    logic [31:0]  kept, reset, value, value_q; // its bits of fields, and what it has to be after the last cycle
    logic        asked_q;       // there was an access since the reset
    logic [31:0] answer, answer_q; // what the last one has to be answered
    logic        mapped, mapped_q;
    logic        raised_q, cleared_q; // written in the last cycle
    logic [31:0] ones_q;              // with these bits
    logic [CHANNELS-1:0] started_q;

    assign enabled = {{8{enable_i[3]}}, {8{enable_i[2]}}, {8{enable_i[1]}}, {8{enable_i[0]}}};
    assign write = access_i && enable_i != '0;

    // The answer is the value before the access. Where nothing lies, it is 0.
    always_comb begin
        answer = '0;
        mapped = 1'b0;
        for (int unsigned k = 0; k < RW; k++) begin
            if (index_i == register_map_pkg::RW_INDEX[10*k +: 10]) begin
                answer = written[32*k +: 32];
                mapped = 1'b1;
            end
        end
        for (int unsigned k = 0; k < RO; k++) begin
            if (index_i == register_map_pkg::RO_INDEX[10*k +: 10]) begin
                answer = given[32*k +: 32];
                mapped = 1'b1;
            end
        end
        for (int unsigned k = 0; k < FIXED; k++) begin
            if (index_i == register_map_pkg::FIXED_INDEX[10*k +: 10]) begin
                answer = register_map_pkg::FIXED_RESET[32*k +: 32];
                mapped = 1'b1;
            end
        end
    end

    always_comb begin
        watched_index = '0;
        kept = '0;
        reset = '0;
        value = '0;
        for (int unsigned k = 0; k < RW; k++) begin
            if (32'(watched) == k) begin
                watched_index = register_map_pkg::RW_INDEX[10*k +: 10];
                kept = register_map_pkg::RW_KEPT[32*k +: 32];
                reset = register_map_pkg::RW_RESET[32*k +: 32];
                value = written[32*k +: 32];
            end
        end
    end

    // A write changes the enabled bytes of the DW that it addresses, of them the bits of fields, and nothing else.
    always_ff @(posedge clk_i) begin
        if (rst_i) begin
            value_q <= reset;
        end else if (write && index_i == watched_index) begin
            value_q <= ((wdata_i & enabled) | (value & ~enabled)) & kept;
        end else begin
            value_q <= value;
        end
    end

    always_ff @(posedge clk_i) begin
        asked_q <= !rst_i && (asked_q || access_i);
        if (access_i) begin
            answer_q <= answer;
            mapped_q <= mapped;
        end
        raised_q <= !rst_i && write && 32'(index_i) == RAISE;
        cleared_q <= !rst_i && write && 32'(index_i) == CLEAR;
        ones_q <= wdata_i & enabled;
        for (int unsigned k = 0; k < CHANNELS; k++) begin
            started_q[k] <= !rst_i && write && 32'(index_i) == CONTROL + k * peach2_regs_pkg::DMAC_STRIDE / 4 &&
                            enable_i[0] && wdata_i[0];
        end
    end

    initial assume (rst_i);

    always_comb begin
        assume (32'(watched) < RW);
        if (!rst_i) begin
            a_write_changes_what_the_map_says: assert (value == value_q);
            bits_without_a_field_are_zero: assert ((written & ~register_map_pkg::RW_KEPT) == '0);
            an_access_is_answered_as_the_map_says: assert (!asked_q || (mapped_o == mapped_q && rdata_o == answer_q));
            raise_and_clear_are_pulses: assert (
                interrupt_pulse_o.raise_written == raised_q && interrupt_pulse_o.clear_written == cleared_q &&
                interrupt_pulse_o.raise == (raised_q ? ones_q : '0) &&
                interrupt_pulse_o.clear == (cleared_q ? ones_q : '0));
            start_is_a_pulse: assert (dmac_pulse_o == started_q);
            idle_means_no_pulse: assert (idle_o == (!raised_q && !cleared_q && started_q == '0));
        end
    end
endmodule
