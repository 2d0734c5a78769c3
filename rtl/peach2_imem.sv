// Internal memory: 32 KB for 1024 descriptors, in two banks of 128 bits, so that a descriptor is read in one cycle.
//
// Port A reads or writes 16 bytes for LOCAL, port B reads 32 bytes for the DMAC. A read gives its data in the next
// cycle and a write of the same cycle is not seen. Contents are zero at power-up and survive a reset.
module peach2_imem #(
    // Rows of 32 bytes, a power of two.
    parameter int unsigned ROWS = peach2_regs_pkg::MEMORY_DESCRIPTORS
) (
    input  logic                      clk_i,
    input  logic                      rst_i,
    input  logic                      a_read_i,
    input  logic                      a_write_i,
    input  logic [$clog2(ROWS):0]     a_index_i,  // units of 16 bytes
    input  logic [15:0]               a_enable_i, // bytes written
    input  logic [127:0]              a_wdata_i,
    output logic [127:0]              a_rdata_o,  // stays until the next read
    input  logic                      b_valid_i,
    input  logic [$clog2(ROWS)-1:0]   b_index_i,  // units of 32 bytes
    output logic                      b_ready_o,
    output logic                      b_rvalid_o,
    output logic [255:0]              b_rdata_o
);
    localparam int unsigned INDEX_BITS = $clog2(ROWS);

    if (ROWS < 2 || (ROWS & (ROWS - 1)) != 0) begin : gen_illegal
        $error("peach2_imem: ROWS must be a power of two of at least 2");
    end

    logic [255:0] a_rdata;
    logic         a_bank_q;
    logic         b_rvalid_q;

    for (genvar bank = 0; bank < 2; bank++) begin : gen_bank
        logic [127:0] memory_q [0:ROWS-1];
        logic [127:0] a_rdata_q, b_rdata_q;

        initial begin
            for (int unsigned row = 0; row < ROWS; row++) begin
                memory_q[row] = '0;
            end
        end

        // Reads come before the write, so that they see the old contents. One process with a blocking write costs a
        // simulator nothing while there are no writes.
        always_ff @(posedge clk_i) begin
            if (a_read_i) begin
                a_rdata_q <= memory_q[a_index_i[INDEX_BITS:1]];
            end
            if (b_valid_i) begin
                b_rdata_q <= memory_q[b_index_i];
            end
            if (a_write_i && a_index_i[0] == 1'(bank)) begin
                for (int unsigned k = 0; k < 16; k++) begin
                    if (a_enable_i[k]) begin
                        memory_q[a_index_i[INDEX_BITS:1]][8*k +: 8] = a_wdata_i[8*k +: 8];
                    end
                end
            end
        end

        assign a_rdata[128*bank +: 128] = a_rdata_q;
        assign b_rdata_o[128*bank +: 128] = b_rdata_q;
    end

    always_ff @(posedge clk_i) begin
        if (a_read_i) begin
            a_bank_q <= a_index_i[0];
        end
    end

    always_ff @(posedge clk_i) begin
        b_rvalid_q <= b_valid_i && !rst_i;
    end

    assign a_rdata_o = a_bank_q ? a_rdata[255:128] : a_rdata[127:0];
    assign b_ready_o = 1'b1;
    assign b_rvalid_o = b_rvalid_q;

`ifndef SYNTHESIS
    port_a_reads_or_writes: assert property (@(posedge clk_i) disable iff (rst_i)
        !(a_read_i && a_write_i));
`endif
endmodule
