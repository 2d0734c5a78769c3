// Synchronous first-in first-out queue with valid/ready on both sides, one entry in and one out each cycle.
//
// An entry can be taken in the cycle after it was given. Both ready_o and valid_o come only from registers.
module peach2_fifo #(
    // Bits of an entry.
    parameter int unsigned WIDTH = 32,
    // Entries, a power of two: more of them hide longer stalls of the next stage, for WIDTH bits each.
    parameter int unsigned DEPTH = 4
) (
    input  logic             clk_i,
    input  logic             rst_i,
    input  logic             valid_i,
    input  logic [WIDTH-1:0] data_i,
    output logic             ready_o,
    output logic             valid_o,
    output logic [WIDTH-1:0] data_o,
    input  logic             ready_i
);
    localparam int unsigned INDEX_BITS = $clog2(DEPTH);

    if (WIDTH == 0 || DEPTH < 2 || (DEPTH & (DEPTH - 1)) != 0) begin : gen_illegal
        $error("peach2_fifo: DEPTH must be a power of two of at least 2, WIDTH at least 1");
    end

    logic [WIDTH-1:0]      entries_q [0:DEPTH-1];
    logic [INDEX_BITS-1:0] head_q, tail_q;
    logic [INDEX_BITS:0]   count_q;
    logic                  push, pop;

    assign ready_o = !count_q[INDEX_BITS];
    assign valid_o = count_q != '0;
    assign push = valid_i && ready_o;
    assign pop = valid_o && ready_i;

    always_comb begin
        data_o = '0;
        if (valid_o) begin
            data_o = entries_q[head_q];
        end
    end

    always_ff @(posedge clk_i) begin
        if (push) begin
            entries_q[tail_q] <= data_i;
        end
    end

    always_ff @(posedge clk_i) begin
        if (rst_i) begin
            head_q <= '0;
            tail_q <= '0;
            count_q <= '0;
        end else if (valid_i || valid_o) begin
            if (push) begin
                tail_q <= tail_q + 1'b1;
            end
            if (pop) begin
                head_q <= head_q + 1'b1;
            end
            if (push != pop) begin
                count_q <= push ? count_q + 1'b1 : count_q - 1'b1;
            end
        end
    end

`ifndef SYNTHESIS
    fifo_never_overflows: assert property (@(posedge clk_i) disable iff (rst_i)
        32'(count_q) == DEPTH |-> !push);
    fifo_never_underflows: assert property (@(posedge clk_i) disable iff (rst_i)
        count_q == '0 |-> !pop);
    fifo_count_stays_within_depth: assert property (@(posedge clk_i) disable iff (rst_i)
        32'(count_q) <= DEPTH);
    fifo_indices_agree_with_count: assert property (@(posedge clk_i) disable iff (rst_i)
        tail_q - head_q == count_q[INDEX_BITS-1:0]);
`endif
endmodule
