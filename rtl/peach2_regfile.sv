// All registers of registers.def; the performance counters are read where they count.
//
// One access a cycle, a DW each. The answer to an access, the value read and whether a register lies there at all,
// comes in the next cycle and stays until the next access. Bits without a field read as 0.
module peach2_regfile (
    input  logic         clk_i,
    input  logic         rst_i,
    input  logic         access_i,     // read, or write where enable_i is set
    input  logic [9:0]   index_i,      // DW within the 4 KB of registers
    input  logic [3:0]   enable_i,     // bytes written
    input  logic [31:0]  wdata_i,
    output logic [31:0]  rdata_o,
    output logic         mapped_o,
    output logic [24:0]  window_base_o, // bits 63:39
    output logic [215:0] mask_o,        // bits 38:12, route k at [27*k +: 27]
    output logic [215:0] lower_o,
    output logic [215:0] upper_o,
    output logic [7:0]   route_enable_o,
    output logic [255:0] subtract_o,    // block b at [64*b +: 64]
    output logic [255:0] source_o,      // channel c at [64*c +: 64]
    output logic [255:0] destination_o,
    output logic [255:0] descriptor_o,
    output logic [255:0] notify_local_o,
    output logic [255:0] notify_remote_o,
    output logic [127:0] length_o,      // channel c at [32*c +: 32]
    output logic [127:0] control_o,
    output logic [127:0] notify_value_o,
    output logic [127:0] width_o,       // rows of register mode
    output logic [127:0] source_pitch_o,
    output logic [127:0] destination_pitch_o,
    output logic [3:0]   start_o,       // pulse; control_o holds the value of the write that caused it
    input  logic [127:0] status_i,
    input  logic [127:0] completed_i,
    // Interrupts: the pulses of writes, and what is kept here.
    output logic [31:0]  raise_o,
    output logic         clear_write_o,
    output logic [31:0]  clear_o,
    output logic [31:0]  interrupt_enable_o,
    output logic [63:0]  interrupt_address_o,
    output logic [31:0]  interrupt_value_o,
    input  logic [31:0]  pending_i,
    // Counters, which live where they count. Link p at [32*p +: 32].
    input  logic [127:0] tlps_in_i,
    input  logic [127:0] tlps_out_i,
    input  logic [127:0] unroutable_i,
    input  logic [127:0] unexpected_i,
    input  logic [31:0]  unsupported_i,
    input  logic [31:0]  refused_i,
    input  logic [31:0]  holds_e_i,
    input  logic [31:0]  holds_w_i,
    output logic         idle_o
);
    localparam int unsigned ROUTES = peach2_regs_pkg::ROUTE_COUNT;
    localparam int unsigned BLOCKS = peach2_regs_pkg::OFFSET_COUNT;
    localparam int unsigned CHANNELS = peach2_regs_pkg::DMAC_COUNT;
    localparam int unsigned START = peach2_regs_pkg::DMAC_CONTROL_START_LSB;
    // Bits of DMAC.CONTROL that are kept.
    localparam logic [31:0] CONTROL_MASK =
        ((32'd1 << peach2_regs_pkg::DMAC_CONTROL_MODE_WIDTH) - 32'd1) << peach2_regs_pkg::DMAC_CONTROL_MODE_LSB |
        32'd1 << peach2_regs_pkg::DMAC_CONTROL_NOTIFY_LOCAL_LSB |
        32'd1 << peach2_regs_pkg::DMAC_CONTROL_NOTIFY_REMOTE_LSB |
        32'd1 << peach2_regs_pkg::DMAC_CONTROL_STRIDE_LSB | 32'd1 << peach2_regs_pkg::DMAC_CONTROL_INTERRUPT_LSB;

    if (peach2_pkg::ROUTE_LSB != 12 || peach2_pkg::ROUTE_BITS != 27 || peach2_pkg::WINDOW_BITS != 39 ||
        ROUTES != peach2_pkg::ROUTES || BLOCKS != 4 || CHANNELS != 4) begin : gen_illegal
        $error("peach2_regfile: registers.def or peach2_pkg does not fit the ports");
    end

    logic [31:0]          scratch_q;
    logic [24:0]          window_base_q;            // bits 63:39
    logic [27*ROUTES-1:0] mask_q, lower_q, upper_q; // bits 38:12
    logic [ROUTES-1:0]    route_enable_q;
    logic [255:0]         subtract_q;
    logic [255:0]         source_q, destination_q, descriptor_q, notify_local_q, notify_remote_q;
    logic [127:0]         length_q, control_q, notify_value_q, width_q, source_pitch_q, destination_pitch_q;
    logic [31:0]          interrupt_enable_q, interrupt_value_q;
    logic [63:0]          interrupt_address_q;
    logic [31:0]          raise_q, clear_q;
    logic                 clear_write_q;
    logic [3:0]           start_q;

    // --- the answer ----------------------------------------------------------------------------------------------

    logic [31:0] rdata_d, rdata_q;
    logic        mapped_d, mapped_q;
    logic [31:0] address; // byte offset

    assign address = {20'd0, index_i, 2'b00};

    function automatic logic [31:0] total(input logic [127:0] counters);
        total = counters[31:0] + counters[63:32] + counters[95:64] + counters[127:96];
    endfunction

    // One line for each register: its offset, where in the vector of its kind it lies.
    always_comb begin
        rdata_d = '0;
        mapped_d = 1'b1;
        if (access_i) begin
            mapped_d = 1'b0;
            case (address)
                peach2_regs_pkg::CHIP_BASE + peach2_regs_pkg::CHIP_ID_OFFSET:
                    {mapped_d, rdata_d} = {1'b1, peach2_regs_pkg::CHIP_ID_RESET};
                peach2_regs_pkg::CHIP_BASE + peach2_regs_pkg::CHIP_VERSION_OFFSET:
                    {mapped_d, rdata_d} = {1'b1, peach2_regs_pkg::CHIP_VERSION_RESET};
                peach2_regs_pkg::CHIP_BASE + peach2_regs_pkg::CHIP_SCRATCH_OFFSET:
                    {mapped_d, rdata_d} = {1'b1, scratch_q};
                peach2_regs_pkg::CHIP_BASE + peach2_regs_pkg::CHIP_WINDOW_BASE_OFFSET:
                    {mapped_d, rdata_d} = {1'b1, 32'd0};
                peach2_regs_pkg::CHIP_BASE + peach2_regs_pkg::CHIP_WINDOW_BASE_OFFSET + 4:
                    {mapped_d, rdata_d} = {1'b1, window_base_q, 7'd0};
                peach2_regs_pkg::INTERRUPT_BASE + peach2_regs_pkg::INTERRUPT_RAISE_OFFSET,
                peach2_regs_pkg::INTERRUPT_BASE + peach2_regs_pkg::INTERRUPT_CLEAR_OFFSET:
                    {mapped_d, rdata_d} = {1'b1, 32'd0};
                peach2_regs_pkg::INTERRUPT_BASE + peach2_regs_pkg::INTERRUPT_PENDING_OFFSET:
                    {mapped_d, rdata_d} = {1'b1, pending_i};
                peach2_regs_pkg::INTERRUPT_BASE + peach2_regs_pkg::INTERRUPT_ENABLE_OFFSET:
                    {mapped_d, rdata_d} = {1'b1, interrupt_enable_q};
                peach2_regs_pkg::INTERRUPT_BASE + peach2_regs_pkg::INTERRUPT_ADDRESS_OFFSET:
                    {mapped_d, rdata_d} = {1'b1, interrupt_address_q[31:0]};
                peach2_regs_pkg::INTERRUPT_BASE + peach2_regs_pkg::INTERRUPT_ADDRESS_OFFSET + 4:
                    {mapped_d, rdata_d} = {1'b1, interrupt_address_q[63:32]};
                peach2_regs_pkg::INTERRUPT_BASE + peach2_regs_pkg::INTERRUPT_VALUE_OFFSET:
                    {mapped_d, rdata_d} = {1'b1, interrupt_value_q};
                peach2_regs_pkg::COUNTER_BASE + peach2_regs_pkg::COUNTER_TLPS_IN_N_OFFSET:
                    {mapped_d, rdata_d} = {1'b1, tlps_in_i[31:0]};
                peach2_regs_pkg::COUNTER_BASE + peach2_regs_pkg::COUNTER_TLPS_IN_E_OFFSET:
                    {mapped_d, rdata_d} = {1'b1, tlps_in_i[63:32]};
                peach2_regs_pkg::COUNTER_BASE + peach2_regs_pkg::COUNTER_TLPS_IN_W_OFFSET:
                    {mapped_d, rdata_d} = {1'b1, tlps_in_i[95:64]};
                peach2_regs_pkg::COUNTER_BASE + peach2_regs_pkg::COUNTER_TLPS_IN_S_OFFSET:
                    {mapped_d, rdata_d} = {1'b1, tlps_in_i[127:96]};
                peach2_regs_pkg::COUNTER_BASE + peach2_regs_pkg::COUNTER_TLPS_OUT_N_OFFSET:
                    {mapped_d, rdata_d} = {1'b1, tlps_out_i[31:0]};
                peach2_regs_pkg::COUNTER_BASE + peach2_regs_pkg::COUNTER_TLPS_OUT_E_OFFSET:
                    {mapped_d, rdata_d} = {1'b1, tlps_out_i[63:32]};
                peach2_regs_pkg::COUNTER_BASE + peach2_regs_pkg::COUNTER_TLPS_OUT_W_OFFSET:
                    {mapped_d, rdata_d} = {1'b1, tlps_out_i[95:64]};
                peach2_regs_pkg::COUNTER_BASE + peach2_regs_pkg::COUNTER_TLPS_OUT_S_OFFSET:
                    {mapped_d, rdata_d} = {1'b1, tlps_out_i[127:96]};
                peach2_regs_pkg::COUNTER_BASE + peach2_regs_pkg::COUNTER_UNROUTABLE_WRITES_OFFSET:
                    {mapped_d, rdata_d} = {1'b1, total(unroutable_i)};
                peach2_regs_pkg::COUNTER_BASE + peach2_regs_pkg::COUNTER_UNSUPPORTED_READS_OFFSET:
                    {mapped_d, rdata_d} = {1'b1, unsupported_i};
                peach2_regs_pkg::COUNTER_BASE + peach2_regs_pkg::COUNTER_UNEXPECTED_COMPLETIONS_OFFSET:
                    {mapped_d, rdata_d} = {1'b1, total(unexpected_i)};
                peach2_regs_pkg::COUNTER_BASE + peach2_regs_pkg::COUNTER_REFUSED_WRITES_OFFSET:
                    {mapped_d, rdata_d} = {1'b1, refused_i};
                peach2_regs_pkg::COUNTER_BASE + peach2_regs_pkg::COUNTER_RING_HOLDS_E_OFFSET:
                    {mapped_d, rdata_d} = {1'b1, holds_e_i};
                peach2_regs_pkg::COUNTER_BASE + peach2_regs_pkg::COUNTER_RING_HOLDS_W_OFFSET:
                    {mapped_d, rdata_d} = {1'b1, holds_w_i};
                default: begin
                end
            endcase
            for (int unsigned k = 0; k < ROUTES; k++) begin
                case (address - peach2_regs_pkg::ROUTE_BASE - k * peach2_regs_pkg::ROUTE_STRIDE)
                    peach2_regs_pkg::ROUTE_MASK_OFFSET: {mapped_d, rdata_d} = {1'b1, mask_q[27*k +: 20], 12'd0};
                    peach2_regs_pkg::ROUTE_MASK_OFFSET + 4: {mapped_d, rdata_d} = {1'b1, 25'd0, mask_q[27*k+20 +: 7]};
                    peach2_regs_pkg::ROUTE_LOWER_OFFSET: {mapped_d, rdata_d} = {1'b1, lower_q[27*k +: 20], 12'd0};
                    peach2_regs_pkg::ROUTE_LOWER_OFFSET + 4: {mapped_d, rdata_d} = {1'b1, 25'd0, lower_q[27*k+20 +: 7]};
                    peach2_regs_pkg::ROUTE_UPPER_OFFSET: {mapped_d, rdata_d} = {1'b1, upper_q[27*k +: 20], 12'd0};
                    peach2_regs_pkg::ROUTE_UPPER_OFFSET + 4: {mapped_d, rdata_d} = {1'b1, 25'd0, upper_q[27*k+20 +: 7]};
                    peach2_regs_pkg::ROUTE_CONTROL_OFFSET: begin
                        mapped_d = 1'b1;
                        rdata_d[peach2_regs_pkg::ROUTE_CONTROL_ENABLE_LSB] = route_enable_q[k];
                    end
                    default: begin
                    end
                endcase
            end
            for (int unsigned b = 0; b < BLOCKS; b++) begin
                case (address - peach2_regs_pkg::OFFSET_BASE - b * peach2_regs_pkg::OFFSET_STRIDE)
                    peach2_regs_pkg::OFFSET_SUBTRACT_OFFSET: {mapped_d, rdata_d} = {1'b1, subtract_q[64*b +: 32]};
                    peach2_regs_pkg::OFFSET_SUBTRACT_OFFSET + 4:
                        {mapped_d, rdata_d} = {1'b1, subtract_q[64*b+32 +: 32]};
                    default: begin
                    end
                endcase
            end
            for (int unsigned c = 0; c < CHANNELS; c++) begin
                case (address - peach2_regs_pkg::DMAC_BASE - c * peach2_regs_pkg::DMAC_STRIDE)
                    peach2_regs_pkg::DMAC_SOURCE_OFFSET: {mapped_d, rdata_d} = {1'b1, source_q[64*c +: 32]};
                    peach2_regs_pkg::DMAC_SOURCE_OFFSET + 4: {mapped_d, rdata_d} = {1'b1, source_q[64*c+32 +: 32]};
                    peach2_regs_pkg::DMAC_DESTINATION_OFFSET:
                        {mapped_d, rdata_d} = {1'b1, destination_q[64*c +: 32]};
                    peach2_regs_pkg::DMAC_DESTINATION_OFFSET + 4:
                        {mapped_d, rdata_d} = {1'b1, destination_q[64*c+32 +: 32]};
                    peach2_regs_pkg::DMAC_LENGTH_OFFSET: {mapped_d, rdata_d} = {1'b1, length_q[32*c +: 32]};
                    peach2_regs_pkg::DMAC_CONTROL_OFFSET: {mapped_d, rdata_d} = {1'b1, control_q[32*c +: 32]};
                    peach2_regs_pkg::DMAC_DESCRIPTOR_OFFSET: {mapped_d, rdata_d} = {1'b1, descriptor_q[64*c +: 32]};
                    peach2_regs_pkg::DMAC_DESCRIPTOR_OFFSET + 4:
                        {mapped_d, rdata_d} = {1'b1, descriptor_q[64*c+32 +: 32]};
                    peach2_regs_pkg::DMAC_NOTIFY_LOCAL_OFFSET:
                        {mapped_d, rdata_d} = {1'b1, notify_local_q[64*c +: 32]};
                    peach2_regs_pkg::DMAC_NOTIFY_LOCAL_OFFSET + 4:
                        {mapped_d, rdata_d} = {1'b1, notify_local_q[64*c+32 +: 32]};
                    peach2_regs_pkg::DMAC_NOTIFY_REMOTE_OFFSET:
                        {mapped_d, rdata_d} = {1'b1, notify_remote_q[64*c +: 32]};
                    peach2_regs_pkg::DMAC_NOTIFY_REMOTE_OFFSET + 4:
                        {mapped_d, rdata_d} = {1'b1, notify_remote_q[64*c+32 +: 32]};
                    peach2_regs_pkg::DMAC_NOTIFY_VALUE_OFFSET:
                        {mapped_d, rdata_d} = {1'b1, notify_value_q[32*c +: 32]};
                    peach2_regs_pkg::DMAC_STATUS_OFFSET: {mapped_d, rdata_d} = {1'b1, status_i[32*c +: 32]};
                    peach2_regs_pkg::DMAC_COMPLETED_OFFSET: {mapped_d, rdata_d} = {1'b1, completed_i[32*c +: 32]};
                    peach2_regs_pkg::DMAC_STRIDE_WIDTH_OFFSET: {mapped_d, rdata_d} = {1'b1, width_q[32*c +: 32]};
                    peach2_regs_pkg::DMAC_STRIDE_SOURCE_PITCH_OFFSET:
                        {mapped_d, rdata_d} = {1'b1, source_pitch_q[32*c +: 32]};
                    peach2_regs_pkg::DMAC_STRIDE_DESTINATION_PITCH_OFFSET:
                        {mapped_d, rdata_d} = {1'b1, destination_pitch_q[32*c +: 32]};
                    default: begin
                    end
                endcase
            end
        end
    end

    always_ff @(posedge clk_i) begin
        if (access_i) begin
            rdata_q <= rdata_d;
            mapped_q <= mapped_d;
        end
    end

    assign rdata_o = rdata_q;
    assign mapped_o = mapped_q;

    // --- writes --------------------------------------------------------------------------------------------------

    logic        write;
    logic [31:0] merged; // what the DW holds after the write: the old value comes from the read path

    assign write = access_i && enable_i != '0;

    always_comb begin
        merged = rdata_d;
        if (write) begin
            for (int unsigned k = 0; k < 4; k++) begin
                if (enable_i[k]) begin
                    merged[8*k +: 8] = wdata_i[8*k +: 8];
                end
            end
        end
    end

    always_ff @(posedge clk_i) begin
        if (rst_i) begin
            scratch_q <= peach2_regs_pkg::CHIP_SCRATCH_RESET;
            window_base_q <= peach2_regs_pkg::CHIP_WINDOW_BASE_RESET[63:39];
        end else if (write) begin
            case (address)
                peach2_regs_pkg::CHIP_BASE + peach2_regs_pkg::CHIP_SCRATCH_OFFSET: scratch_q <= merged;
                peach2_regs_pkg::CHIP_BASE + peach2_regs_pkg::CHIP_WINDOW_BASE_OFFSET + 4:
                    window_base_q <= merged[31:7];
                default: begin
                end
            endcase
        end
    end

    always_ff @(posedge clk_i) begin
        if (rst_i) begin
            mask_q <= {ROUTES{peach2_regs_pkg::ROUTE_MASK_RESET[38:12]}};
            lower_q <= {ROUTES{peach2_regs_pkg::ROUTE_LOWER_RESET[38:12]}};
            upper_q <= {ROUTES{peach2_regs_pkg::ROUTE_UPPER_RESET[38:12]}};
            route_enable_q <= {ROUTES{peach2_regs_pkg::ROUTE_CONTROL_RESET[
                peach2_regs_pkg::ROUTE_CONTROL_ENABLE_LSB]}};
        end else if (write) begin
            for (int unsigned k = 0; k < ROUTES; k++) begin
                case (address - peach2_regs_pkg::ROUTE_BASE - k * peach2_regs_pkg::ROUTE_STRIDE)
                    peach2_regs_pkg::ROUTE_MASK_OFFSET: mask_q[27*k +: 20] <= merged[31:12];
                    peach2_regs_pkg::ROUTE_MASK_OFFSET + 4: mask_q[27*k+20 +: 7] <= merged[6:0];
                    peach2_regs_pkg::ROUTE_LOWER_OFFSET: lower_q[27*k +: 20] <= merged[31:12];
                    peach2_regs_pkg::ROUTE_LOWER_OFFSET + 4: lower_q[27*k+20 +: 7] <= merged[6:0];
                    peach2_regs_pkg::ROUTE_UPPER_OFFSET: upper_q[27*k +: 20] <= merged[31:12];
                    peach2_regs_pkg::ROUTE_UPPER_OFFSET + 4: upper_q[27*k+20 +: 7] <= merged[6:0];
                    peach2_regs_pkg::ROUTE_CONTROL_OFFSET:
                        route_enable_q[k] <= merged[peach2_regs_pkg::ROUTE_CONTROL_ENABLE_LSB];
                    default: begin
                    end
                endcase
            end
        end
    end

    always_ff @(posedge clk_i) begin
        if (rst_i) begin
            subtract_q <= {BLOCKS{peach2_regs_pkg::OFFSET_SUBTRACT_RESET}};
        end else if (write) begin
            for (int unsigned b = 0; b < BLOCKS; b++) begin
                case (address - peach2_regs_pkg::OFFSET_BASE - b * peach2_regs_pkg::OFFSET_STRIDE)
                    peach2_regs_pkg::OFFSET_SUBTRACT_OFFSET: subtract_q[64*b +: 32] <= merged;
                    peach2_regs_pkg::OFFSET_SUBTRACT_OFFSET + 4: subtract_q[64*b+32 +: 32] <= merged;
                    default: begin
                    end
                endcase
            end
        end
    end

    always_ff @(posedge clk_i) begin
        start_q <= '0;
        if (rst_i) begin
            source_q <= {CHANNELS{peach2_regs_pkg::DMAC_SOURCE_RESET}};
            destination_q <= {CHANNELS{peach2_regs_pkg::DMAC_DESTINATION_RESET}};
            length_q <= {CHANNELS{peach2_regs_pkg::DMAC_LENGTH_RESET}};
            control_q <= {CHANNELS{peach2_regs_pkg::DMAC_CONTROL_RESET}};
            descriptor_q <= {CHANNELS{peach2_regs_pkg::DMAC_DESCRIPTOR_RESET}};
            notify_local_q <= {CHANNELS{peach2_regs_pkg::DMAC_NOTIFY_LOCAL_RESET}};
            notify_remote_q <= {CHANNELS{peach2_regs_pkg::DMAC_NOTIFY_REMOTE_RESET}};
            notify_value_q <= {CHANNELS{peach2_regs_pkg::DMAC_NOTIFY_VALUE_RESET}};
            width_q <= {CHANNELS{peach2_regs_pkg::DMAC_STRIDE_WIDTH_RESET}};
            source_pitch_q <= {CHANNELS{peach2_regs_pkg::DMAC_STRIDE_SOURCE_PITCH_RESET}};
            destination_pitch_q <= {CHANNELS{peach2_regs_pkg::DMAC_STRIDE_DESTINATION_PITCH_RESET}};
        end else if (write) begin
            for (int unsigned c = 0; c < CHANNELS; c++) begin
                case (address - peach2_regs_pkg::DMAC_BASE - c * peach2_regs_pkg::DMAC_STRIDE)
                    peach2_regs_pkg::DMAC_SOURCE_OFFSET: source_q[64*c +: 32] <= merged;
                    peach2_regs_pkg::DMAC_SOURCE_OFFSET + 4: source_q[64*c+32 +: 32] <= merged;
                    peach2_regs_pkg::DMAC_DESTINATION_OFFSET: destination_q[64*c +: 32] <= merged;
                    peach2_regs_pkg::DMAC_DESTINATION_OFFSET + 4: destination_q[64*c+32 +: 32] <= merged;
                    peach2_regs_pkg::DMAC_LENGTH_OFFSET: length_q[32*c +: 32] <= merged;
                    peach2_regs_pkg::DMAC_CONTROL_OFFSET: begin
                        control_q[32*c +: 32] <= merged & CONTROL_MASK;
                        start_q[c] <= merged[START];
                    end
                    peach2_regs_pkg::DMAC_DESCRIPTOR_OFFSET: descriptor_q[64*c +: 32] <= merged;
                    peach2_regs_pkg::DMAC_DESCRIPTOR_OFFSET + 4: descriptor_q[64*c+32 +: 32] <= merged;
                    peach2_regs_pkg::DMAC_NOTIFY_LOCAL_OFFSET: notify_local_q[64*c +: 32] <= merged;
                    peach2_regs_pkg::DMAC_NOTIFY_LOCAL_OFFSET + 4: notify_local_q[64*c+32 +: 32] <= merged;
                    peach2_regs_pkg::DMAC_NOTIFY_REMOTE_OFFSET: notify_remote_q[64*c +: 32] <= merged;
                    peach2_regs_pkg::DMAC_NOTIFY_REMOTE_OFFSET + 4: notify_remote_q[64*c+32 +: 32] <= merged;
                    peach2_regs_pkg::DMAC_NOTIFY_VALUE_OFFSET: notify_value_q[32*c +: 32] <= merged;
                    peach2_regs_pkg::DMAC_STRIDE_WIDTH_OFFSET: width_q[32*c +: 32] <= merged;
                    peach2_regs_pkg::DMAC_STRIDE_SOURCE_PITCH_OFFSET: source_pitch_q[32*c +: 32] <= merged;
                    peach2_regs_pkg::DMAC_STRIDE_DESTINATION_PITCH_OFFSET: destination_pitch_q[32*c +: 32] <= merged;
                    default: begin
                    end
                endcase
            end
        end
    end

    always_ff @(posedge clk_i) begin
        raise_q <= 32'd0;
        clear_write_q <= 1'b0;
        if (rst_i) begin
            interrupt_enable_q <= peach2_regs_pkg::INTERRUPT_ENABLE_RESET;
            interrupt_address_q <= peach2_regs_pkg::INTERRUPT_ADDRESS_RESET;
            interrupt_value_q <= peach2_regs_pkg::INTERRUPT_VALUE_RESET;
            clear_q <= 32'd0;
        end else if (write) begin
            case (address)
                peach2_regs_pkg::INTERRUPT_BASE + peach2_regs_pkg::INTERRUPT_RAISE_OFFSET: raise_q <= merged;
                peach2_regs_pkg::INTERRUPT_BASE + peach2_regs_pkg::INTERRUPT_CLEAR_OFFSET: begin
                    clear_write_q <= 1'b1;
                    clear_q <= merged;
                end
                peach2_regs_pkg::INTERRUPT_BASE + peach2_regs_pkg::INTERRUPT_ENABLE_OFFSET:
                    interrupt_enable_q <= merged;
                peach2_regs_pkg::INTERRUPT_BASE + peach2_regs_pkg::INTERRUPT_ADDRESS_OFFSET:
                    interrupt_address_q[31:0] <= merged;
                peach2_regs_pkg::INTERRUPT_BASE + peach2_regs_pkg::INTERRUPT_ADDRESS_OFFSET + 4:
                    interrupt_address_q[63:32] <= merged;
                peach2_regs_pkg::INTERRUPT_BASE + peach2_regs_pkg::INTERRUPT_VALUE_OFFSET:
                    interrupt_value_q <= merged;
                default: begin
                end
            endcase
        end
    end

    // --- outputs -------------------------------------------------------------------------------------------------

    assign mask_o = mask_q;
    assign lower_o = lower_q;
    assign upper_o = upper_q;
    assign window_base_o = window_base_q;
    assign route_enable_o = route_enable_q;
    assign subtract_o = subtract_q;
    assign source_o = source_q;
    assign destination_o = destination_q;
    assign descriptor_o = descriptor_q;
    assign notify_local_o = notify_local_q;
    assign notify_remote_o = notify_remote_q;
    assign length_o = length_q;
    assign control_o = control_q;
    assign notify_value_o = notify_value_q;
    assign width_o = width_q;
    assign source_pitch_o = source_pitch_q;
    assign destination_pitch_o = destination_pitch_q;
    assign raise_o = raise_q;
    assign clear_write_o = clear_write_q;
    assign clear_o = clear_q;
    assign interrupt_enable_o = interrupt_enable_q;
    assign interrupt_address_o = interrupt_address_q;
    assign interrupt_value_o = interrupt_value_q;
    assign start_o = start_q;
    assign idle_o = start_q == '0 && raise_q == '0 && !clear_write_q;

`ifndef SYNTHESIS
    start_lasts_one_cycle_unless_written_again: assert property (@(posedge clk_i) disable iff (rst_i)
        !write |=> start_q == '0);
`endif
endmodule
