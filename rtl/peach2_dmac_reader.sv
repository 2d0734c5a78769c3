// Read requests of the DMAC: shares the N port fairly between the channels' descriptor fetches and data segments, and
// gives each data read a slot of the reorder buffer.
//
// Descriptor fetches go first, because a channel without descriptors stalls. Tags: bit 7 clear, two bits of generation,
// five of slot for data; bit 7 set, five bits of generation, two of channel for descriptors.
module peach2_dmac_reader (
    input  logic         clk_i,
    input  logic         rst_i,
    input  logic [15:0]  cfg_requester_i,

    input  logic [3:0]   fetch_valid_i,
    input  logic [255:0] fetch_address_i,
    input  logic [31:0]  fetch_bytes_i,      // 8 bits for each channel
    input  logic [19:0]  fetch_generation_i, // 5 bits for each channel
    output logic [3:0]   fetch_ready_o,

    input  logic [3:0]   segment_valid_i,
    input  logic [255:0] segment_source_i,
    input  logic [39:0]  segment_bytes_i,    // 10 bits for each channel
    output logic [3:0]   segment_ready_o,

    // the slot for the segment granted in this cycle
    input  logic         slot_ready_i,
    input  logic [6:0]   slot_tag_i,
    output logic         slot_take_o,
    output logic [1:0]   slot_channel_o,

    output logic         valid_o,
    output logic [peach2_pkg::BEAT_T_BITS-1:0] beat_o,
    input  logic         ready_i
);
    logic [3:0] fetch_grant, segment_grant;
    logic       free; // the output register can take a request
    logic       any_fetch, any_segment;

    peach2_arbiter #(.COUNT(4)) u_fetch_arbiter (
        .clk_i(clk_i), .rst_i(rst_i), .request_i(fetch_valid_i), .taken_i(free && any_fetch), .last_i(1'b1),
        .grant_o(fetch_grant)
    );
    peach2_arbiter #(.COUNT(4)) u_segment_arbiter (
        .clk_i(clk_i), .rst_i(rst_i), .request_i(segment_valid_i), .taken_i(free && any_segment), .last_i(1'b1),
        .grant_o(segment_grant)
    );

    assign any_fetch = fetch_valid_i != 4'd0;
    assign any_segment = segment_valid_i != 4'd0 && !any_fetch && slot_ready_i;
    assign fetch_ready_o = free ? fetch_grant : 4'd0;
    assign segment_ready_o = free && any_segment ? segment_grant : 4'd0;
    assign slot_take_o = free && any_segment;

    // --- the granted request ---
    logic [1:0]  channel;
    logic [63:0] address;
    logic [9:0]  bytes;
    logic [7:0]  tag;
    logic [3:0]  grant;

    peach2_pkg::request_t header;
    always_comb begin
        grant = '0;
        channel = '0;
        address = '0;
        bytes = '0;
        tag = '0;
        header = '0;
        if (any_fetch || any_segment) begin
            grant = any_fetch ? fetch_grant : segment_grant;
            channel = {grant[3] | grant[2], grant[3] | grant[1]};
            address = any_fetch ? fetch_address_i[64 * channel +: 64] : segment_source_i[64 * channel +: 64];
            bytes = any_fetch ? {2'd0, fetch_bytes_i[8 * channel +: 8]} : segment_bytes_i[10 * channel +: 10];
            tag = any_fetch ? {1'b1, fetch_generation_i[5 * channel +: 5], channel} : {1'b0, slot_tag_i};
            header.dw0.fmt = peach2_pkg::FMT_4DW;
            header.dw0.typ = peach2_pkg::TYPE_MEMORY;
            header.dw0.length = {2'd0, bytes[9:2]};
            header.requester = cfg_requester_i;
            header.tag = tag;
            header.first_be = 4'hf;
            header.last_be = bytes == 10'd4 ? 4'h0 : 4'hf;
            header.address_hi = address[63:32];
            header.address_lo = address[31:2];
        end
    end
    assign slot_channel_o = channel;

    peach2_pkg::beat_t beat_q;
    logic              valid_q;
    assign free = !valid_q || ready_i;

    always_ff @(posedge clk_i) begin
        if (rst_i) begin
            valid_q <= 1'b0;
        end else if (free) begin
            valid_q <= any_fetch || any_segment;
        end
        if (free && (any_fetch || any_segment)) begin
            beat_q.sop <= 1'b1;
            beat_q.eop <= 1'b1;
            beat_q.empty <= 2'd0;
            beat_q.data <= header;
        end
    end
    assign valid_o = valid_q;
    assign beat_o = beat_q;

    // data requests are whole DWs and lie within 4 KB: the channels ensure this
    logic unused;
    assign unused = &{1'b0, address[1:0], bytes[1:0], grant[0]};

`ifndef SYNTHESIS
    a_request_is_stable_until_taken : assert property (@(posedge clk_i) disable iff (rst_i)
        valid_q && !ready_i |=> valid_q && $stable(beat_q));
`endif
endmodule
