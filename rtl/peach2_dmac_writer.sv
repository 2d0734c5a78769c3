// Memory writes of the DMAC: turns finished reads into writes of at most Max_Payload_Size, and writes the channels'
// completion status words and the board's interrupt messages. One beat a cycle without gaps as long as finished reads
// are available.
//
// Writes are cut at multiples of Max_Payload_Size of the destination, so none crosses 4 KB. Source and destination
// agree in their low four bits: a word of the reorder buffer is a beat of the write.
module peach2_dmac_writer (
    input  logic         clk_i,
    input  logic         rst_i,
    input  logic [15:0]  cfg_requester_i,
    input  logic [3:0]   cfg_mps_log2_i,   // 7..12

    // the oldest read
    input  logic         head_valid_i,
    input  logic [3:0]   head_error_i,
    input  logic [1:0]   head_channel_i,
    input  logic [63:0]  head_destination_i,
    input  logic [9:0]   head_bytes_i,
    input  logic         head_last_i,
    input  logic         head_interrupt_i,
    input  logic [peach2_pkg::DESTS-1:0] head_dest_i,
    input  logic [4:0]   head_word_i,
    output logic         head_pop_o,
    output logic [4:0]   read_word_o,
    input  logic [127:0] read_data_i,

    // to the channels
    input  logic [3:0]   abort_i,
    output logic [3:0]   retire_o,
    output logic         retire_last_o,
    output logic         retire_interrupt_o,
    output logic [3:0]   retire_error_o,

    // completion status words; ready: the word has been passed to its output
    input  logic [3:0]   notify_valid_i,
    input  logic [255:0] notify_address_i,
    input  logic [255:0] notify_data_i,
    input  logic [4*peach2_pkg::DESTS-1:0] notify_dest_i,
    output logic [3:0]   notify_ready_o,

    // the interrupt message, 4 bytes to the own host, taken with its header
    input  logic         message_valid_i,
    input  logic [63:0]  message_address_i,
    input  logic [31:0]  message_value_i,
    output logic         message_ready_o,

    output logic         valid_o,
    output logic [peach2_pkg::BEAT_T_BITS-1:0] beat_o,
    output logic [peach2_pkg::DESTS-1:0] dest_o,
    input  logic         ready_i,

    output logic         idle_o
);
    typedef enum logic [1:0] {
        WRITER_HEADER, // between packets
        WRITER_DATA,
        WRITER_STATUS, // payload of a status word
        WRITER_MESSAGE // payload of an interrupt message
    } state_e;

    state_e      state_d, state_q;
    logic        first_d, first_q;             // the next header is the first of its read
    logic [63:0] destination_d, destination_q; // of the next header of this read
    logic [9:0]  left_d, left_q;               // bytes of the read after the current packet
    logic [4:0]  word_d, word_q;
    logic [5:0]  beats_d, beats_q;             // payload beats not issued yet
    logic [1:0]  tail_d, tail_q;               // empty DWs of the packet's last beat
    logic [1:0]  status_d, status_q;           // channel of the current status word
    logic [63:0] status_word_q;                // the word, as of its header
    logic [31:0] message_q;                    // the message, as of its header
    logic [1:0]  message_lane_q;
    logic        credit;                       // the output buffer takes one more beat
    logic        active;                       // otherwise no beat is issued
    assign active = state_q != WRITER_HEADER || head_valid_i || notify_valid_i != 4'd0 || message_valid_i;

    // --- the next write of the oldest read ---
    logic [63:0] destination;
    logic [9:0]  left, room, bytes;
    logic [10:0] span; // bytes from the first lane on
    logic        drop;

    logic [12:0] mps, to_boundary;

    always_comb begin
        destination = '0;
        left = '0;
        mps = '0;
        to_boundary = '0;
        room = '0;
        bytes = '0;
        span = '0;
        drop = 1'b0;
        if (state_q == WRITER_HEADER && head_valid_i) begin
            destination = first_q ? head_destination_i : destination_q;
            left = first_q ? head_bytes_i : left_q;
            // bytes to the next multiple of the maximum payload, saturating where a read cannot reach it
            mps = 13'd1 << cfg_mps_log2_i;
            to_boundary = mps - ({1'b0, destination[11:0]} & (mps - 13'd1));
            room = to_boundary > 13'd512 ? 10'd512 : to_boundary[9:0];
            bytes = left < room ? left : room;
            span = {1'b0, bytes} + {7'd0, destination[3:0]};
            drop = head_error_i != peach2_regs_pkg::DMA_OK || abort_i[head_channel_i];
        end
    end

    // --- status words, one channel at a time ---
    logic [3:0]  notify_waiting, notify_grant;
    logic [3:0]  notify_in_flight_q; // issued, but not yet passed to its output
    logic        any_notify, notify_now, message_now;
    logic [1:0]  notify_channel;
    logic [63:0] notify_address;

    assign notify_waiting = notify_valid_i & ~notify_in_flight_q;
    assign any_notify = notify_waiting != 4'd0;
    assign notify_now = state_q == WRITER_HEADER && first_q && any_notify && credit;
    assign message_now = state_q == WRITER_HEADER && first_q && message_valid_i && !any_notify && credit;
    peach2_arbiter #(.COUNT(4)) u_notify_arbiter (
        .clk_i(clk_i), .rst_i(rst_i), .request_i(notify_waiting), .taken_i(notify_now), .last_i(1'b1),
        .grant_o(notify_grant)
    );
    always_comb begin
        notify_channel = '0;
        notify_address = '0;
        if (notify_now) begin
            notify_channel = {notify_grant[3] | notify_grant[2], notify_grant[3] | notify_grant[1]};
            notify_address = notify_address_i[64 * notify_channel +: 64];
        end
    end

    // --- headers ---
    peach2_pkg::request_t header;
    always_comb begin
        header = '0;
        if (state_q == WRITER_HEADER && active) begin
            header.dw0.fmt = peach2_pkg::FMT_4DW_DATA;
            header.dw0.typ = peach2_pkg::TYPE_MEMORY;
            header.requester = cfg_requester_i;
            header.first_be = 4'hf;
            if (notify_now) begin
                header.dw0.length = 10'd2;
                header.last_be = 4'hf;
                {header.address_hi, header.address_lo} = notify_address[63:2];
            end else if (message_now) begin
                header.dw0.length = 10'd1;
                {header.address_hi, header.address_lo} = message_address_i[63:2];
            end else begin
                header.dw0.length = {2'd0, bytes[9:2]};
                header.last_be = bytes == 10'd4 ? 4'h0 : 4'hf;
                {header.address_hi, header.address_lo} = destination[63:2];
            end
        end
    end

    // --- the beat issued in this cycle ---
    logic         issue, issue_sop, issue_eop, issue_memory;
    logic [1:0]   issue_empty;
    logic [127:0] issue_data; // header, or status word on both halves
    logic [peach2_pkg::DESTS-1:0] issue_dest;
    logic         issue_retire; // the read's last beat
    logic         issue_notify; // the status word
    logic         leaves;       // the last beat of a read goes to its output

    always_comb begin
        state_d = state_q;
        first_d = first_q;
        destination_d = destination_q;
        left_d = left_q;
        word_d = word_q;
        beats_d = beats_q;
        tail_d = tail_q;
        status_d = status_q;
        issue = 1'b0;
        issue_sop = 1'b0;
        issue_eop = 1'b0;
        issue_memory = 1'b0;
        issue_empty = 2'd0;
        issue_data = '0;
        issue_dest = '0;
        head_pop_o = 1'b0;
        issue_retire = 1'b0;
        issue_notify = 1'b0;
        message_ready_o = 1'b0;

        if (active) begin
            issue_data = header;
            issue_dest = head_dest_i;
            unique case (state_q)
                WRITER_HEADER: begin
                    if (notify_now) begin
                        issue = 1'b1;
                        issue_sop = 1'b1;
                        issue_dest = notify_dest_i[peach2_pkg::DESTS * notify_channel +: peach2_pkg::DESTS];
                        status_d = notify_channel;
                        state_d = WRITER_STATUS;
                    end else if (message_now) begin
                        issue = 1'b1;
                        issue_sop = 1'b1;
                        issue_dest = 7'd1 << peach2_pkg::DEST_N;
                        message_ready_o = 1'b1;
                        state_d = WRITER_MESSAGE;
                    end else if (head_valid_i && first_q && drop) begin
                        head_pop_o = !leaves; // one report a cycle
                    end else if (head_valid_i && credit) begin
                        issue = 1'b1;
                        issue_sop = 1'b1;
                        destination_d = destination + {54'd0, bytes};
                        left_d = left - bytes;
                        word_d = first_q ? head_word_i : word_q;
                        beats_d = span[9:4] + {5'd0, span[3:0] != 4'd0};
                        tail_d = 2'd0 - span[3:2];
                        first_d = 1'b0;
                        state_d = WRITER_DATA;
                    end
                end
                WRITER_DATA: begin
                    if (credit) begin
                        issue = 1'b1;
                        issue_memory = 1'b1;
                        word_d = word_q + 5'd1;
                        beats_d = beats_q - 6'd1;
                        if (beats_q == 6'd1) begin
                            issue_eop = 1'b1;
                            issue_empty = tail_q;
                            state_d = WRITER_HEADER;
                            if (left_q == 10'd0) begin
                                head_pop_o = 1'b1;
                                issue_retire = 1'b1;
                                first_d = 1'b1;
                            end
                        end
                    end
                end
                WRITER_STATUS: begin
                    issue_dest = notify_dest_i[peach2_pkg::DESTS * status_q +: peach2_pkg::DESTS];
                    issue_data = {2{status_word_q}};
                    if (credit) begin
                        issue = 1'b1;
                        issue_eop = 1'b1;
                        issue_empty = notify_address_i[64 * status_q + 3] ? 2'd0 : 2'd2;
                        issue_notify = 1'b1;
                        state_d = WRITER_HEADER;
                    end
                end
                WRITER_MESSAGE: begin
                    issue_dest = 7'd1 << peach2_pkg::DEST_N;
                    issue_data = {4{message_q}};
                    if (credit) begin
                        issue = 1'b1;
                        issue_eop = 1'b1;
                        issue_empty = 2'd3 - message_lane_q;
                        state_d = WRITER_HEADER;
                    end
                end
                default: state_d = WRITER_HEADER;
            endcase
        end
    end

    assign read_word_o = word_q;

    // --- one cycle for the memory, then the output buffer ---
    // retire, notify, channel, last, interrupt; destination; beat
    localparam int unsigned ENTRY_BITS = 6 + peach2_pkg::DESTS + peach2_pkg::BEAT_T_BITS;
    logic                  pending_q, pending_memory_q;
    logic [ENTRY_BITS-1:0] pending_entry_q;
    logic [ENTRY_BITS-1:0] entry;
    logic [ENTRY_BITS-1:0] buffer_q [0:3];
    logic [2:0]            write_q, read_q;
    logic [2:0]            credits_q;

    assign entry = pending_memory_q ? {pending_entry_q[ENTRY_BITS-1:128], read_data_i} : pending_entry_q;
    assign credit = credits_q != 3'd0;

    always_ff @(posedge clk_i) begin
        if (rst_i) begin
            state_q <= WRITER_HEADER;
            first_q <= 1'b1;
            destination_q <= 64'd0;
            left_q <= 10'd0;
            word_q <= 5'd0;
            beats_q <= 6'd0;
            tail_q <= 2'd0;
            status_q <= 2'd0;
            notify_in_flight_q <= 4'd0;
            pending_q <= 1'b0;
            write_q <= 3'd0;
            read_q <= 3'd0;
            credits_q <= 3'd4;
        end else begin
            if (active) begin
                state_q <= state_d;
                first_q <= first_d;
                destination_q <= destination_d;
                left_q <= left_d;
                word_q <= word_d;
                beats_q <= beats_d;
                tail_q <= tail_d;
                status_q <= status_d;
            end
            notify_in_flight_q <= (notify_in_flight_q | (notify_now ? notify_grant : 4'd0)) & ~notify_ready_o;
            pending_q <= issue;
            write_q <= write_q + {2'd0, pending_q};
            read_q <= read_q + {2'd0, valid_o && ready_i};
            credits_q <= credits_q - {2'd0, issue} + {2'd0, valid_o && ready_i};
        end
    end

    always_ff @(posedge clk_i) begin
        if (notify_now) begin
            status_word_q <= notify_data_i[64 * notify_channel +: 64];
        end
        if (message_now) begin
            message_q <= message_value_i;
            message_lane_q <= message_address_i[3:2];
        end
        if (issue) begin
            pending_memory_q <= issue_memory;
            pending_entry_q <= {issue_retire, issue_notify, issue_notify ? status_q : head_channel_i, head_last_i,
                head_interrupt_i, issue_dest, issue_sop, issue_eop, issue_empty, issue_data};
        end
        if (pending_q) begin
            buffer_q[write_q[1:0]] <= entry;
        end
    end

    assign valid_o = write_q != read_q;
    logic       front_retire, front_notify, front_last, front_interrupt;
    logic [1:0] front_channel;
    assign {front_retire, front_notify, front_channel, front_last, front_interrupt, dest_o, beat_o} =
        buffer_q[read_q[1:0]];

    // A read, or a status word, is reported when its last beat has been passed to its output: nothing later can pass it
    // there. A dropped read is reported at once.
    assign notify_ready_o = valid_o && ready_i && front_notify ? 4'd1 << front_channel : 4'd0;
    assign leaves = valid_o && ready_i && front_retire;
    always_comb begin
        retire_o = 4'd0;
        retire_last_o = front_last;
        retire_interrupt_o = front_interrupt;
        retire_error_o = peach2_regs_pkg::DMA_OK;
        if (leaves) begin
            retire_o = 4'd1 << front_channel;
        end else if (head_pop_o && first_q) begin
            retire_o = 4'd1 << head_channel_i;
            retire_last_o = head_last_i;
            retire_interrupt_o = head_interrupt_i;
            retire_error_o = head_error_i;
        end
    end
    assign idle_o = state_q == WRITER_HEADER && credits_q == 3'd4;

    logic unused;
    assign unused = &{1'b0, destination[1:0], span[10], span[1:0], notify_address[1:0], notify_grant[0],
        message_address_i[1:0]};

`ifndef SYNTHESIS
    a_channel_waits_until_its_status_word_has_left : assert property (@(posedge clk_i) disable iff (rst_i)
        (notify_in_flight_q & ~notify_valid_i) == 4'd0);
    output_credits_never_exceed_the_buffer : assert property (@(posedge clk_i) disable iff (rst_i)
        credits_q <= 3'd4);
    a_beat_is_stable_until_taken : assert property (@(posedge clk_i) disable iff (rst_i)
        valid_o && !ready_i |=> valid_o && $stable(beat_o) && $stable(dest_o));
`endif
endmodule
