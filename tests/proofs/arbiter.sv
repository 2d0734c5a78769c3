// The arbiter: one requester at a time, whole packets, and round robin: while a requester waits, every other one begins
// at most one packet. A requester may also withdraw its request.
//
// The solver chooses the requester that waits and the other one freely.
//
// prove arbiter_7 by pdr
// prove arbiter_4 by pdr
// assume dut.only_a_requested_beat_is_taken
module arbiter_check #(
    parameter int unsigned COUNT = 7
) (
    input logic             clk_i,
    input logic             rst_i,
    input logic [COUNT-1:0] request_i,
    input logic             taken_i,
    input logic             last_i,
    input logic [COUNT-1:0] grant_o
);
    localparam int unsigned BITS = $clog2(COUNT);

    logic            locked_q; // inside a packet
    logic [BITS-1:0] owner_q;  // whose packet it is, or was the last one
    logic [BITS-1:0] first;    // first requester after it
    logic [BITS-1:0] granted;

    // The definition of round robin: the first requester after the owner, counting around, the owner itself last.
    logic found;
    always_comb begin
        first = '0;
        found = 1'b0;
        for (int unsigned k = 0; k < COUNT; k++) begin
            if (!found && request_i[k] && k > 32'(owner_q)) begin
                first = BITS'(k);
                found = 1'b1;
            end
        end
        for (int unsigned k = 0; k < COUNT; k++) begin
            if (!found && request_i[k]) begin
                first = BITS'(k);
                found = 1'b1;
            end
        end
        granted = '0;
        for (int unsigned k = 0; k < COUNT; k++) begin
            if (grant_o[k]) begin
                granted = BITS'(k);
            end
        end
    end

    always_ff @(posedge clk_i) begin
        if (rst_i) begin
            locked_q <= 1'b0;
            owner_q <= BITS'(COUNT - 1);
        end else if (taken_i) begin
            locked_q <= !last_i;
            owner_q <= granted;
        end
    end

    // One that waits, and how many packets another one begins meanwhile.
    (* anyconst *) logic [BITS-1:0] waiter;
    (* anyconst *) logic [BITS-1:0] other;
    logic       passed_q; // the other one has begun a packet since the waiter requests
    logic       waits, begins;

    assign waits = request_i[waiter] && !(taken_i && grant_o[waiter]);
    assign begins = taken_i && !locked_q && grant_o[other];

    always_ff @(posedge clk_i) begin
        passed_q <= !rst_i && waits && (passed_q || begins);
    end

    initial assume (rst_i);

    always_comb begin
        assume (32'(waiter) < COUNT && 32'(other) < COUNT && waiter != other);
        if (!rst_i) begin
            the_first_one_after_the_owner_is_granted: assert (
                locked_q || request_i == '0 || grant_o == COUNT'(1) << first);
            a_packet_is_not_interrupted: assert (!locked_q || grant_o == (request_i & (COUNT'(1) << owner_q)));
            nobody_passes_a_waiting_one_twice: assert (!(passed_q && begins && waits));
        end
    end
endmodule

module arbiter_7 (
    input logic       clk_i,
    input logic       rst_i,
    input logic [6:0] request_i,
    input logic       taken_i,
    input logic       last_i
);
    logic [6:0] grant_o;

    peach2_arbiter #(.COUNT(7)) dut (.*);
    arbiter_check #(.COUNT(7)) check (.*);
endmodule

module arbiter_4 (
    input logic       clk_i,
    input logic       rst_i,
    input logic [3:0] request_i,
    input logic       taken_i,
    input logic       last_i
);
    logic [3:0] grant_o;

    peach2_arbiter #(.COUNT(4)) dut (.*);
    arbiter_check #(.COUNT(4)) check (.*);
endmodule
