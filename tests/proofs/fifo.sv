// The FIFO: every entry that was given comes out once, unchanged and in its place, and the next one is there as soon as
// the queue is not empty.
//
// The solver chooses one entry freely and follows it (`picked_q`); what holds for one that is arbitrary holds for all.
// The width is that of the FIFO of a link port.
//
// prove fifo_4 by induction 1
// prove fifo_2 by induction 1
module fifo_check #(
    parameter int unsigned DEPTH = 4,
    parameter int unsigned WIDTH = 133
) (
    input logic             clk_i,
    input logic             rst_i,
    input logic             valid_i,
    input logic [WIDTH-1:0] data_i,
    input logic             ready_o,
    input logic             valid_o,
    input logic [WIDTH-1:0] data_o,
    input logic             ready_i,
    input logic             pick_i,
    input logic [$clog2(DEPTH):0]   inside_count_i,
    input logic [$clog2(DEPTH)-1:0] inside_head_i,
    input logic [$clog2(DEPTH)-1:0] inside_tail_i,
    input logic [DEPTH*WIDTH-1:0]   inside_entries_i
);
    localparam int unsigned INDEX_BITS = $clog2(DEPTH);

    logic [INDEX_BITS:0]   held_q;   // entries given and not taken yet
    logic                  picked_q; // the chosen entry is inside
    logic [INDEX_BITS:0]   ahead_q;  // entries that must come out before it
    logic [WIDTH-1:0]      data_q;
    logic                  given, taken;
    logic [INDEX_BITS-1:0] place;    // of the chosen entry

    assign given = valid_i && ready_o;
    assign taken = valid_o && ready_i;
    assign place = inside_head_i + ahead_q[INDEX_BITS-1:0];

    always_ff @(posedge clk_i) begin
        if (rst_i) begin
            held_q <= '0;
            picked_q <= 1'b0;
        end else begin
            held_q <= held_q + {{INDEX_BITS{1'b0}}, given} - {{INDEX_BITS{1'b0}}, taken};
            if (given && pick_i && !picked_q) begin
                picked_q <= 1'b1;
                data_q <= data_i;
                ahead_q <= held_q - {{INDEX_BITS{1'b0}}, taken};
            end else if (taken && picked_q) begin
                picked_q <= ahead_q != '0;
                ahead_q <= ahead_q - 1'b1;
            end
        end
    end

    initial assume (rst_i);

    always_comb begin
        if (!rst_i) begin
            an_entry_is_offered_whenever_one_is_inside: assert (valid_o == (held_q != '0));
            an_entry_is_accepted_whenever_there_is_a_place: assert (ready_o == (32'(held_q) < DEPTH));
            the_entry_comes_out_in_its_place: assert (!(picked_q && ahead_q == '0) || data_o == data_q);
            an_entry_inside_is_not_lost: assert (!picked_q || ahead_q < held_q);
        end
    end

    // what makes the induction go through
    logic stands;
    always_comb begin
        stands = 1'b1;
        for (int unsigned k = 0; k < DEPTH; k++) begin
            if (picked_q && 32'(place) == k) begin
                stands = inside_entries_i[WIDTH*k +: WIDTH] == data_q;
            end
        end
        if (!rst_i) begin
            the_count_is_right: assert (inside_count_i == held_q);
            the_entry_stands_in_its_place: assert (stands);
        end
    end
endmodule

module fifo_4 (
    input logic         clk_i,
    input logic         rst_i,
    input logic         valid_i,
    input logic [132:0] data_i,
    input logic         ready_i,
    input logic         pick_i
);
    logic         ready_o, valid_o;
    logic [132:0] data_o;
    (* hierconn *) wire [2:0] \dut.count_q ;
    (* hierconn *) wire [1:0] \dut.head_q ;
    (* hierconn *) wire [1:0] \dut.tail_q ;
    (* hierconn *) wire [132:0] \dut.entries_q[0] ;
    (* hierconn *) wire [132:0] \dut.entries_q[1] ;
    (* hierconn *) wire [132:0] \dut.entries_q[2] ;
    (* hierconn *) wire [132:0] \dut.entries_q[3] ;

    peach2_fifo #(.WIDTH(133), .DEPTH(4)) dut (.*);
    fifo_check #(.WIDTH(133), .DEPTH(4)) check (
        .inside_count_i(\dut.count_q ), .inside_head_i(\dut.head_q ), .inside_tail_i(\dut.tail_q ),
        .inside_entries_i({\dut.entries_q[3] , \dut.entries_q[2] , \dut.entries_q[1] , \dut.entries_q[0] }), .*);
endmodule

module fifo_2 (
    input logic       clk_i,
    input logic       rst_i,
    input logic       valid_i,
    input logic [7:0] data_i,
    input logic       ready_i,
    input logic       pick_i
);
    logic       ready_o, valid_o;
    logic [7:0] data_o;
    (* hierconn *) wire [1:0] \dut.count_q ;
    (* hierconn *) wire       \dut.head_q ;
    (* hierconn *) wire       \dut.tail_q ;
    (* hierconn *) wire [7:0] \dut.entries_q[0] ;
    (* hierconn *) wire [7:0] \dut.entries_q[1] ;

    peach2_fifo #(.WIDTH(8), .DEPTH(2)) dut (.*);
    fifo_check #(.WIDTH(8), .DEPTH(2)) check (
        .inside_count_i(\dut.count_q ), .inside_head_i(\dut.head_q ), .inside_tail_i(\dut.tail_q ),
        .inside_entries_i({\dut.entries_q[1] , \dut.entries_q[0] }), .*);
endmodule
