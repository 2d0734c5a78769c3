// Interrupts to the own host: pending bits, set by DMA channels and by anyone who writes RAISE, and the message that
// tells of them. A message is sent once; CLEAR allows the next.
module peach2_interrupt (
    input  logic        clk_i,
    input  logic        rst_i,
    input  logic [31:0] raise_i,   // ones of a write to RAISE
    input  logic [3:0]  channel_i, // DMA channels that end with an interrupt
    input  logic        clear_write_i,
    input  logic [31:0] clear_i,   // ones of a write to CLEAR
    input  logic [31:0] enable_i,
    output logic [31:0] pending_o,
    // the message, taken by the DMAC's writer
    output logic        valid_o,
    input  logic        ready_i,
    output logic        idle_o
);
    localparam logic [31:0] RAISED_BITS = 32'hffffff00;

    logic [31:0] pending_d, pending_q;
    logic        sent_d, sent_q; // a message is outstanding

    always_comb begin
        pending_d = pending_q;
        sent_d = sent_q;
        if (clear_write_i) begin
            pending_d = pending_q & ~clear_i;
            sent_d = 1'b0;
        end
        pending_d = pending_d | (raise_i & RAISED_BITS) | {28'd0, channel_i};
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
endmodule
