// Round-robin arbiter that keeps the grant until the last beat of a packet has moved.
//
// grant_o answers in the same cycle, so that packets follow each other without a bubble. The requester served last has
// the lowest priority for the next packet.
module peach2_arbiter #(
    // Number of requesters.
    parameter int unsigned COUNT = 7
) (
    input  logic             clk_i,
    input  logic             rst_i,
    input  logic [COUNT-1:0] request_i, // requester k has a beat for this output
    input  logic             taken_i,   // the granted beat moves in this cycle
    input  logic             last_i,    // the granted beat ends its packet
    output logic [COUNT-1:0] grant_o    // one-hot or zero, one of the requests
);
    if (COUNT < 2) begin : gen_illegal
        $error("peach2_arbiter: COUNT must be at least 2");
    end

    logic               locked_q;
    logic [COUNT-1:0]   owner_q; // owner of the current packet, or of the last one
    logic [2*COUNT-1:0] doubled, picked;

    // Subtracting the priority, one bit above the last owner, clears the lowest request at or above it and sets the
    // bits below that request.
    always_comb begin
        doubled = '0;
        picked = '0;
        grant_o = '0;
        if (request_i != '0) begin
            if (locked_q) begin
                grant_o = owner_q & request_i;
            end else begin
                doubled = {request_i, request_i};
                picked = doubled & ~(doubled - {{COUNT{1'b0}}, owner_q[COUNT-2:0], owner_q[COUNT-1]});
                grant_o = picked[COUNT-1:0] | picked[2*COUNT-1:COUNT];
            end
        end
    end

    always_ff @(posedge clk_i) begin
        if (rst_i) begin
            locked_q <= 1'b0;
            owner_q <= {1'b1, {(COUNT - 1){1'b0}}};
        end else if (taken_i) begin
            locked_q <= !last_i;
            owner_q <= grant_o;
        end
    end

`ifndef SYNTHESIS
    grant_is_one_hot_or_zero: assert property (@(posedge clk_i) disable iff (rst_i)
        $onehot0(grant_o));
    only_a_requested_beat_is_taken: assert property (@(posedge clk_i) disable iff (rst_i)
        taken_i |-> grant_o != '0);
    only_who_requests_is_granted: assert property (@(posedge clk_i) disable iff (rst_i)
        (grant_o & ~request_i) == '0);
    owner_keeps_the_grant_until_its_last_beat: assert property (@(posedge clk_i) disable iff (rst_i)
        locked_q && grant_o != '0 |-> grant_o == owner_q);
    some_requester_is_granted: assert property (@(posedge clk_i) disable iff (rst_i)
        request_i != '0 && !locked_q |-> grant_o != '0);
`endif
endmodule
