// Input side of a link port: a small FIFO, then one register in which the destination of a packet is decided.
//
//   kind               from N                                      from E W S
//   completion         DMAC                                        DISCARD, counted as unexpected
//   request, BAR 0     LOCAL                                       -
//   write              by route; none: DISCARD, counted            the same; back to the port it came from: none
//   read               LOCAL if that is its route, else answered   answered Unsupported Request
//                      Unsupported Request
//
// Reads that are answered Unsupported Request also go to LOCAL, marked, because LOCAL makes the completions. A write
// that a route of E, W or S would send back to its port of entry would bounce between two boards for ever, so it counts
// as unroutable; N may send to N, which is how the own node's blocks are reached through the window.
module peach2_ingress #(
    // The link port: DEST_N .. DEST_S.
    parameter int unsigned PORT = 0,
    // Beats of the FIFO; the hard IP has the buffer that the credits promise, so a few suffice.
    parameter int unsigned DEPTH = 4
) (
    input  logic                         clk_i,
    input  logic                         rst_i,
    input  logic                         rx_valid_i,
    input  peach2_pkg::beat_t            rx_beat_i,
    input  logic                         rx_bar0_i,     // the packet hit BAR 0 (N; valid with the header)
    output logic                         rx_ready_o,
    input  logic [63:peach2_regs_pkg::WINDOW_BITS]                  window_base_i,
    input  logic [peach2_regs_pkg::ROUTE_COUNT*peach2_regs_pkg::ROUTE_RW_BITS-1:0] routes_i,
    output logic                         valid_o,
    output peach2_pkg::beat_t            beat_o,
    output logic [peach2_pkg::DESTS-1:0] dest_o,        // one-hot, stable over a packet
    output logic                         unsupported_o, // with dest LOCAL: answer Unsupported Request
    input  logic                         ready_i,
    output logic [31:0]                  tlps_o,        // counters: packets taken
    output logic [31:0]                  unroutable_o,  // writes sent to DISCARD
    output logic [31:0]                  unexpected_o,  // completions sent to DISCARD
    output logic                         idle_o,
    output logic                         still_o        // no beat moves inside
);
    localparam bit NORTH = PORT == peach2_pkg::DEST_N;
    localparam int unsigned WIDTH = peach2_pkg::BEAT_T_BITS + 1;

    if (PORT > peach2_pkg::DEST_S) begin : gen_illegal
        $error("peach2_ingress: PORT must be a link port");
    end

    logic                         head_valid, head_bar0, head_ready;
    peach2_pkg::beat_t            head;
    peach2_pkg::request_t         request;
    logic                         is_completion, is_write;
    logic                         routing;
    logic [63:0]                  address;
    logic [4:0]                   hit;
    logic                         in_window;
    logic [peach2_pkg::DESTS-1:0] dest_d, dest_q;
    logic                         unsupported_d, unsupported_q;
    logic                         valid_q;
    peach2_pkg::beat_t            beat_q;
    logic                         load;
    logic [31:0]                  tlps_q, unroutable_q, unexpected_q;

    peach2_fifo #(.WIDTH(WIDTH), .DEPTH(DEPTH)) i_fifo (
        .clk_i, .rst_i,
        .valid_i(rx_valid_i), .data_i({rx_bar0_i, rx_beat_i}), .ready_o(rx_ready_o),
        .valid_o(head_valid), .data_o({head_bar0, head}), .ready_i(head_ready)
    );

    assign request = head.data;
    assign is_completion = request.dw0.typ == peach2_pkg::TYPE_COMPLETION;
    assign is_write = request.dw0.fmt[1];
    assign head_ready = !valid_q || ready_i;
    assign load = head_valid && head_ready;
    assign routing = load && head.sop;

    // Only while a header passes, so that a simulator has no work otherwise.
    assign address = routing ? {request.address_hi, request.address_lo, 2'b00} : '0;
    peach2_route i_route (
        .address_i(address), .window_base_i, .routes_i,
        .in_window_o(in_window), .hit_o(hit)
    );

    always_comb begin
        dest_d = '0;
        unsupported_d = 1'b0;
        if (routing) begin
            if (is_completion) begin
                dest_d[NORTH ? peach2_pkg::DEST_DMAC : peach2_pkg::DEST_DISCARD] = 1'b1;
            end else if (NORTH && head_bar0) begin
                dest_d[peach2_pkg::DEST_LOCAL] = 1'b1;
            end else if (is_write) begin
                dest_d[4:0] = hit;
                if (!NORTH) begin
                    dest_d[PORT] = 1'b0;
                end
                dest_d[peach2_pkg::DEST_DISCARD] = dest_d[4:0] == '0;
            end else begin
                dest_d[peach2_pkg::DEST_LOCAL] = 1'b1;
                unsupported_d = !(NORTH && hit[peach2_pkg::DEST_LOCAL]);
            end
        end
    end

    always_ff @(posedge clk_i) begin
        if (rst_i) begin
            valid_q <= 1'b0;
        end else if (head_ready) begin
            valid_q <= head_valid;
        end
    end

    always_ff @(posedge clk_i) begin
        if (load) begin
            beat_q <= head;
        end
        if (routing) begin
            dest_q <= dest_d;
            unsupported_q <= unsupported_d;
        end
    end

    always_ff @(posedge clk_i) begin
        if (rst_i) begin
            tlps_q <= '0;
            unroutable_q <= '0;
            unexpected_q <= '0;
        end else if (routing) begin
            tlps_q <= tlps_q + 32'd1;
            if (dest_d[peach2_pkg::DEST_DISCARD]) begin
                if (is_completion) begin
                    unexpected_q <= unexpected_q + 32'd1;
                end else begin
                    unroutable_q <= unroutable_q + 32'd1;
                end
            end
        end
    end

    assign valid_o = valid_q;
    assign beat_o = beat_q;
    assign dest_o = dest_q;
    assign unsupported_o = unsupported_q;
    assign tlps_o = tlps_q;
    assign unroutable_o = unroutable_q;
    assign unexpected_o = unexpected_q;
    assign idle_o = !head_valid && !valid_q;
    assign still_o = !load && !(valid_q && ready_i);

`ifndef SYNTHESIS
    logic in_packet_q;
    always_ff @(posedge clk_i) begin
        if (rst_i) begin
            in_packet_q <= 1'b0;
        end else if (load) begin
            in_packet_q <= !head.eop;
        end
    end
    packet_begins_with_its_header: assert property (@(posedge clk_i) disable iff (rst_i)
        load |-> head.sop == !in_packet_q);
    requests_have_four_header_dws: assert property (@(posedge clk_i) disable iff (rst_i)
        routing && !is_completion |-> request.dw0.typ == peach2_pkg::TYPE_MEMORY && request.dw0.fmt[0]);
    packet_has_one_destination: assert property (@(posedge clk_i) disable iff (rst_i)
        valid_q |-> $onehot(dest_q));
    beat_is_stable_until_taken: assert property (@(posedge clk_i) disable iff (rst_i)
        valid_q && !ready_i |=> valid_q && $stable(beat_q) && $stable(dest_q));
    sender_keeps_its_beat_until_taken: assert property (@(posedge clk_i) disable iff (rst_i)
        rx_valid_i && !rx_ready_o |=> rx_valid_i && $stable(rx_beat_i));
`endif

    logic unused_ok;
    assign unused_ok = &{1'b0, in_window, head_bar0, request};
endmodule
