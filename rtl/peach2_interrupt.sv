// Interrupts to the own host: pending bits, set by DMA channels and by any write to RAISE, and the message that reports
// them. A message is sent once; CLEAR allows the next one.
module peach2_interrupt (
    input  logic        clk_i,
    input  logic        rst_i,
    input  peach2_regs_pkg::interrupt_pulse_t pulse_i,
    input  logic [3:0]  channel_i, // DMA channels that end with an interrupt
    input  logic [31:0] enable_i,
    output logic [31:0] pending_o,
    // the message, taken by the DMAC's writer
    output logic        valid_o,
    input  logic        ready_i,
    output logic        idle_o
);
    localparam logic [31:0] RAISED_BITS = 32'hffffffff << peach2_regs_pkg::INTERRUPT_RAISED_LSB;

    logic [31:0] pending_d, pending_q;
    logic        sent_d, sent_q; // a message is outstanding

    always_comb begin
        pending_d = pending_q;
        sent_d = sent_q;
        if (pulse_i.clear_written) begin
            pending_d = pending_q & ~pulse_i.clear;
            sent_d = 1'b0;
        end
        pending_d = pending_d | (pulse_i.raise & RAISED_BITS) | {28'd0, channel_i};
        if (valid_o && ready_i) begin
            sent_d = 1'b1;
        end
    end

    always_ff @(posedge clk_i) begin
        if (rst_i) begin
            pending_q <= 32'd0;
            sent_q <= 1'b0;
        end else begin
            pending_q <= pending_d;
            sent_q <= sent_d;
        end
    end

    assign pending_o = pending_q;
    assign valid_o = (pending_q & enable_i) != 32'd0 && !sent_q;
    assign idle_o = !valid_o;

    // A write that raises no bit has no effect.
    logic unused_ok;
    assign unused_ok = &{1'b0, pulse_i.raise_written};
endmodule
