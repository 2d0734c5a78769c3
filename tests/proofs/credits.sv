// The credits of the DMAC's writer: each is a place of the output buffer. A beat that is issued takes one and gives it
// back when the output takes the beat. A credit is available, on its way with a beat (one cycle, for the memory), or
// held by a beat in the buffer: the three always add up to the size of the buffer.
//
// The solver chooses one beat freely and follows it (`picked_q`); what holds for one that is arbitrary holds for all.
// The reads, status words and messages that the writer gets are any.
//
// prove credits_writer by induction 1
// assume dut.u_notify_arbiter.grant_is_one_hot_or_zero
// assume dut.u_notify_arbiter.some_requester_is_granted
// assume dut.a_channel_waits_until_its_status_word_has_left
module credits_check #(
    parameter int unsigned CREDITS = 4,
    parameter int unsigned WIDTH = 8
) (
    input logic             clk_i,
    input logic             rst_i,
    input logic             issue_i,      // a beat is issued
    input logic             memory_i,     // its data comes from the memory in the next cycle
    input logic [WIDTH-1:0] issued_i,     // its other bits, and its data if they do not
    input logic [127:0]     read_data_i,
    input logic             valid_o,
    input logic [WIDTH-1:0] front_i,      // the beat that is offered
    input logic             ready_i,
    input logic             pick_i,
    input logic [2:0]       inside_credits_i,
    input logic             inside_pending_i,
    input logic             inside_memory_i,
    input logic [WIDTH-1:0] inside_pending_entry_i,
    input logic [2:0]       inside_write_i,
    input logic [2:0]       inside_read_i,
    input logic [CREDITS*WIDTH-1:0] inside_buffer_i
);
    logic [3:0]       out_q;    // beats issued that the output has not taken
    logic             picked_q; // the chosen beat is one of them
    logic             waits_q;  // its data comes from the memory in this cycle
    logic [3:0]       ahead_q;  // beats that must leave before it
    logic [WIDTH-1:0] beat_q;
    logic [WIDTH-1:0] beat;     // with its data
    logic             taken;

    assign taken = valid_o && ready_i;
    assign beat = waits_q ? {beat_q[WIDTH-1:128], read_data_i} : beat_q;

    always_ff @(posedge clk_i) begin
        if (rst_i) begin
            out_q <= '0;
            picked_q <= 1'b0;
            waits_q <= 1'b0;
        end else begin
            out_q <= out_q + {3'd0, issue_i} - {3'd0, taken};
            waits_q <= 1'b0;
            beat_q <= beat;
            if (issue_i && pick_i && !picked_q) begin
                picked_q <= 1'b1;
                waits_q <= memory_i;
                beat_q <= issued_i;
                ahead_q <= out_q - {3'd0, taken};
            end else if (taken && picked_q) begin
                picked_q <= ahead_q != '0;
                ahead_q <= ahead_q - 1'b1;
            end
        end
    end

    initial assume (rst_i);

    always_comb begin
        if (!rst_i) begin
            no_beat_is_issued_without_a_credit: assert (!(issue_i && inside_credits_i == '0));
            credits_and_beats_add_up_to_the_buffer: assert ({1'b0, inside_credits_i} + out_q == 4'(CREDITS));
            credits_on_their_way_and_held_are_those_of_beats: assert (
                out_q == {3'd0, inside_pending_i} + {1'b0, inside_write_i - inside_read_i});
            a_beat_is_offered_once_it_is_in_the_buffer: assert (valid_o == (out_q > {3'd0, inside_pending_i}));
            the_beat_leaves_in_its_place: assert (!(picked_q && ahead_q == '0 && valid_o) || front_i == beat);
        end
    end

    // what makes the induction go through: the chosen beat is where it should be
    logic       stands;
    logic [2:0] place;
    always_comb begin
        stands = 1'b1;
        place = inside_read_i + ahead_q[2:0];
        if (picked_q) begin
            stands = ahead_q < out_q;
            if (inside_pending_i && ahead_q == out_q - 1'b1) begin
                stands = waits_q == inside_memory_i && inside_pending_entry_i[WIDTH-1:128] == beat[WIDTH-1:128] &&
                         (waits_q || inside_pending_entry_i[127:0] == beat[127:0]);
            end else begin
                for (int unsigned k = 0; k < CREDITS; k++) begin
                    if (32'(place[1:0]) == k) begin
                        stands = stands && !waits_q && inside_buffer_i[WIDTH*k +: WIDTH] == beat;
                    end
                end
            end
        end
        if (!rst_i) begin
            a_beat_inside_is_not_lost: assert (stands);
        end
    end
endmodule

module credits_writer (
    input logic         clk_i,
    input logic         rst_i,
    input logic [15:0]  cfg_requester_i,
    input logic [3:0]   cfg_mps_log2_i,
    input logic         head_valid_i,
    input logic [3:0]   head_error_i,
    input logic [1:0]   head_channel_i,
    input logic [63:0]  head_destination_i,
    input logic [9:0]   head_bytes_i,
    input logic         head_last_i,
    input logic         head_interrupt_i,
    input logic [peach2_pkg::DESTS-1:0] head_dest_i,
    input logic [4:0]   head_word_i,
    input logic [127:0] read_data_i,
    input logic [3:0]   abort_i,
    input logic [3:0]   notify_valid_i,
    input logic [255:0] notify_address_i,
    input logic [255:0] notify_data_i,
    input logic [4*peach2_pkg::DESTS-1:0] notify_dest_i,
    input logic         message_valid_i,
    input logic [63:0]  message_address_i,
    input logic [31:0]  message_value_i,
    input logic         ready_i,
    input logic         pick_i
);
    localparam int unsigned WIDTH = peach2_pkg::DESTS + peach2_pkg::BEAT_T_BITS;
    localparam int unsigned ENTRY = WIDTH + 6; // with what is reported when the beat leaves

    logic               valid_o;
    logic [peach2_pkg::BEAT_T_BITS-1:0] beat_o;
    logic [peach2_pkg::DESTS-1:0] dest_o;
    (* hierconn *) wire [2:0]   \dut.credits_q ;
    (* hierconn *) wire         \dut.pending_q ;
    (* hierconn *) wire         \dut.pending_memory_q ;
    (* hierconn *) wire [ENTRY-1:0] \dut.pending_entry_q ;
    (* hierconn *) wire [2:0]   \dut.write_q ;
    (* hierconn *) wire [2:0]   \dut.read_q ;
    (* hierconn *) wire [ENTRY-1:0] \dut.buffer_q[0] ;
    (* hierconn *) wire [ENTRY-1:0] \dut.buffer_q[1] ;
    (* hierconn *) wire [ENTRY-1:0] \dut.buffer_q[2] ;
    (* hierconn *) wire [ENTRY-1:0] \dut.buffer_q[3] ;
    (* hierconn *) wire         \dut.issue ;
    (* hierconn *) wire         \dut.issue_memory ;
    (* hierconn *) wire         \dut.issue_sop ;
    (* hierconn *) wire         \dut.issue_eop ;
    (* hierconn *) wire [1:0]   \dut.issue_empty ;
    (* hierconn *) wire [127:0] \dut.issue_data ;
    (* hierconn *) wire [peach2_pkg::DESTS-1:0] \dut.issue_dest ;

    // A status word is one decision of the arbiter.
    (* hierconn *) wire \dut.u_notify_arbiter.locked_q ;
    always_comb begin
        if (!rst_i) begin
            the_arbiter_decides_anew_for_each_status_word: assert (!\dut.u_notify_arbiter.locked_q );
        end
    end

    peach2_dmac_writer dut (
        .head_pop_o(), .read_word_o(), .retire_o(), .retire_last_o(), .retire_interrupt_o(), .retire_error_o(),
        .notify_ready_o(), .message_ready_o(), .idle_o(), .*);
    credits_check #(.CREDITS(4), .WIDTH(WIDTH)) check (
        .clk_i, .rst_i, .issue_i(\dut.issue ), .memory_i(\dut.issue_memory ),
        .issued_i({\dut.issue_dest , \dut.issue_sop , \dut.issue_eop , \dut.issue_empty , \dut.issue_data }),
        .read_data_i, .valid_o, .front_i({dest_o, beat_o}), .ready_i, .pick_i,
        .inside_credits_i(\dut.credits_q ), .inside_pending_i(\dut.pending_q ),
        .inside_memory_i(\dut.pending_memory_q ), .inside_pending_entry_i(\dut.pending_entry_q [WIDTH-1:0]),
        .inside_write_i(\dut.write_q ), .inside_read_i(\dut.read_q ),
        .inside_buffer_i({\dut.buffer_q[3] [WIDTH-1:0], \dut.buffer_q[2] [WIDTH-1:0], \dut.buffer_q[1] [WIDTH-1:0],
                          \dut.buffer_q[0] [WIDTH-1:0]}));
endmodule
