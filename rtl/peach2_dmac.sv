// The DMA controller: four channels, one reorder buffer, one writer.
//
//   registers -> channel x4 -> reader -> N port        reads of data and of descriptors
//                   ^  ^          |
//                   |  fetch x4   v
//   completions --- | ------> reorder -> writer -> any port, and the completion status words
//                   +----------------------+   retire
module peach2_dmac (
    input  logic         clk_i,
    input  logic         rst_i,
    input  logic [15:0]  cfg_requester_i,
    input  logic [3:0]   cfg_mps_log2_i,
    input  logic [15:0]  cfg_start_cycles_i,  // before a channel's first request for data
    input  logic [15:0]  cfg_fetch_left_i,    // how many of them are left when it requests a chain's first descriptor
    input  logic [15:0]  cfg_finish_cycles_i, // between its last write and the completion status
    input  logic [9:0]   cfg_read_bytes_i,    // largest read request: 64, 128, 256 or 512
    input  logic [5:0]   cfg_read_tags_i,     // outstanding data reads, 1..32
    input  logic [2:0]   cfg_prefetch_i,      // descriptors fetched with one read, 1..4

    // registers, channel after channel
    input  logic [4*peach2_regs_pkg::DMAC_RW_BITS-1:0]    rw_i,
    input  logic [4*peach2_regs_pkg::DMAC_PULSE_BITS-1:0] pulse_i,
    input  logic         ro_read_i,           // ro_o may be read in this cycle; otherwise it is zero
    output logic [4*peach2_regs_pkg::DMAC_RO_BITS-1:0]    ro_o,

    // routes
    input  logic [63:peach2_regs_pkg::WINDOW_BITS]  window_base_i,
    input  logic [peach2_regs_pkg::ROUTE_COUNT*peach2_regs_pkg::ROUTE_RW_BITS-1:0] routes_i,

    // the board's memory, one descriptor at a time
    output logic         imem_valid_o,
    output logic [9:0]   imem_index_o,
    input  logic         imem_ready_i,
    input  logic         imem_rvalid_i,
    input  logic [255:0] imem_rdata_i,

    // completions from N
    input  logic         cpl_valid_i,
    input  logic [peach2_pkg::BEAT_T_BITS-1:0] cpl_beat_i,
    output logic         cpl_ready_o,

    // read requests, one beat each, to N
    output logic         rd_valid_o,
    output logic [peach2_pkg::BEAT_T_BITS-1:0] rd_beat_o,
    input  logic         rd_ready_i,

    // memory writes
    output logic         wr_valid_o,
    output logic [peach2_pkg::BEAT_T_BITS-1:0] wr_beat_o,
    output logic [peach2_pkg::DESTS-1:0] wr_dest_o,
    input  logic         wr_ready_i,

    // the board's interrupt message
    input  logic         message_valid_i,
    input  logic [63:0]  message_address_i,
    input  logic [31:0]  message_value_i,
    output logic         message_ready_o,

    output logic [3:0]   interrupt_o,  // pulse: channel c requests an interrupt
    output logic         unexpected_o, // a completion that matches no request
    output logic         idle_o
);
    localparam int unsigned CHANNELS = 4;
    localparam int unsigned DESTS = peach2_pkg::DESTS;

    logic [3:0]   fetch_begin, fetch_board, fetch_stop, fetch_settled, fetch_valid, fetch_fence, fetch_ready,
        fetch_failed;
    logic [4*256-1:0] fetch_descriptor;
    logic [255:0] fetch_address;
    logic [15:0]  fetch_error;
    logic [3:0]   read_valid, read_ready;
    logic [255:0] read_address;
    logic [31:0]  read_bytes;
    logic [19:0]  read_generation;
    logic [3:0]   segment_valid, segment_ready, segment_last, segment_interrupt;
    logic [255:0] segment_source, segment_destination;
    logic [39:0]  segment_bytes;
    logic [4*DESTS-1:0] segment_dest;
    logic [3:0]   retire, abort, lost, channel_idle;
    logic         retire_last, retire_interrupt;
    logic [3:0]   retire_error;
    logic [3:0]   notify_valid, notify_ready;
    logic [255:0] notify_address, notify_data;
    logic [4*DESTS-1:0] notify_dest;
    logic         fetch_header, fetch_data;
    logic [1:0]   fetch_channel;
    logic [4:0]   fetch_generation;
    logic [3:0]   fetch_cpl_error, fetch_expected;
    logic [127:0] fetch_word;
    logic [3:0]   imem_valid, imem_grant;
    logic [39:0]  imem_index;
    logic [3:0]   imem_owner_q; // channel of the next word

    for (genvar c = 0; c < CHANNELS; c++) begin : g_channel
        peach2_dmac_channel u_channel (
            .clk_i(clk_i), .rst_i(rst_i), .cfg_start_cycles_i(cfg_start_cycles_i), .cfg_fetch_left_i(cfg_fetch_left_i),
            .cfg_finish_cycles_i(cfg_finish_cycles_i), .cfg_read_bytes_i(cfg_read_bytes_i),
            .regs_i(rw_i[peach2_regs_pkg::DMAC_RW_BITS*c +: peach2_regs_pkg::DMAC_RW_BITS]),
            .pulse_i(pulse_i[peach2_regs_pkg::DMAC_PULSE_BITS*c +: peach2_regs_pkg::DMAC_PULSE_BITS]),
            .regs_read_i(ro_read_i),
            .regs_o(ro_o[peach2_regs_pkg::DMAC_RO_BITS*c +: peach2_regs_pkg::DMAC_RO_BITS]),
            .window_base_i(window_base_i), .routes_i(routes_i),
            .fetch_begin_o(fetch_begin[c]), .fetch_address_o(fetch_address[64*c +: 64]),
            .fetch_board_o(fetch_board[c]), .fetch_stop_o(fetch_stop[c]),
            .fetch_settled_i(fetch_settled[c]), .fetch_valid_i(fetch_valid[c]), .fetch_fence_i(fetch_fence[c]),
            .fetch_descriptor_i(fetch_descriptor[256*c +: 256]), .fetch_ready_o(fetch_ready[c]),
            .fetch_failed_i(fetch_failed[c]), .fetch_error_i(fetch_error[4*c +: 4]),
            .segment_valid_o(segment_valid[c]), .segment_source_o(segment_source[64*c +: 64]),
            .segment_destination_o(segment_destination[64*c +: 64]),
            .segment_bytes_o(segment_bytes[10*c +: 10]), .segment_last_o(segment_last[c]),
            .segment_interrupt_o(segment_interrupt[c]),
            .segment_dest_o(segment_dest[DESTS*c +: DESTS]), .segment_ready_i(segment_ready[c]),
            .retire_i(retire[c]), .retire_last_i(retire_last), .retire_interrupt_i(retire_interrupt),
            .retire_error_i(retire_error),
            .abort_o(abort[c]), .lost_o(lost[c]),
            .notify_valid_o(notify_valid[c]), .notify_address_o(notify_address[64*c +: 64]),
            .notify_data_o(notify_data[64*c +: 64]), .notify_dest_o(notify_dest[DESTS*c +: DESTS]),
            .notify_ready_i(notify_ready[c]), .interrupt_o(interrupt_o[c]), .idle_o(channel_idle[c])
        );

        peach2_dmac_fetch #(.CHANNEL(c)) u_fetch (
            .clk_i(clk_i), .rst_i(rst_i), .cfg_prefetch_i(cfg_prefetch_i),
            .begin_i(fetch_begin[c]), .board_i(fetch_board[c]), .address_i(fetch_address[64*c +: 64]),
            .stop_i(fetch_stop[c]), .settled_o(fetch_settled[c]),
            .valid_o(fetch_valid[c]), .fence_o(fetch_fence[c]), .descriptor_o(fetch_descriptor[256*c +: 256]),
            .ready_i(fetch_ready[c]),
            .failed_o(fetch_failed[c]), .error_o(fetch_error[4*c +: 4]),
            .read_valid_o(read_valid[c]), .read_address_o(read_address[64*c +: 64]),
            .read_bytes_o(read_bytes[8*c +: 8]), .read_generation_o(read_generation[5*c +: 5]),
            .read_ready_i(read_ready[c]),
            .cpl_header_i(fetch_header), .cpl_channel_i(fetch_channel), .cpl_generation_i(fetch_generation),
            .cpl_error_i(fetch_cpl_error), .cpl_data_i(fetch_data), .cpl_word_i(fetch_word),
            .cpl_expected_o(fetch_expected[c]),
            .imem_valid_o(imem_valid[c]), .imem_index_o(imem_index[10*c +: 10]),
            .imem_ready_i(imem_grant[c] && imem_ready_i), .imem_rvalid_i(imem_rvalid_i && imem_owner_q[c]),
            .imem_rdata_i(imem_rdata_i)
        );
    end

    // --- the board's memory: one read in progress, since its owner is stored until the word arrives ---
    logic imem_busy_q, imem_take;
    logic [1:0] imem_channel;
    assign imem_valid_o = imem_valid != 4'd0 && !imem_busy_q;
    assign imem_take = imem_valid_o && imem_ready_i;
    peach2_arbiter #(.COUNT(4)) u_imem_arbiter (
        .clk_i(clk_i), .rst_i(rst_i), .request_i(imem_busy_q ? 4'd0 : imem_valid), .taken_i(imem_take), .last_i(1'b1),
        .grant_o(imem_grant)
    );
    always_comb begin
        imem_channel = '0;
        imem_index_o = '0;
        if (imem_valid_o) begin
            imem_channel = {imem_grant[3] | imem_grant[2], imem_grant[3] | imem_grant[1]};
            imem_index_o = imem_index[10 * imem_channel +: 10];
        end
    end

    always_ff @(posedge clk_i) begin
        if (rst_i) begin
            imem_busy_q <= 1'b0;
            imem_owner_q <= 4'd0;
        end else if (imem_take) begin
            imem_busy_q <= 1'b1;
            imem_owner_q <= imem_grant;
        end else if (imem_rvalid_i) begin
            imem_busy_q <= 1'b0;
        end
    end

    // --- reads ---
    logic       slot_ready, slot_take;
    logic [6:0] slot_tag;
    logic [1:0] slot_channel;

    peach2_dmac_reader u_reader (
        .clk_i(clk_i), .rst_i(rst_i), .cfg_requester_i(cfg_requester_i),
        .fetch_valid_i(read_valid), .fetch_address_i(read_address), .fetch_bytes_i(read_bytes),
        .fetch_generation_i(read_generation), .fetch_ready_o(read_ready),
        .segment_valid_i(segment_valid), .segment_source_i(segment_source), .segment_bytes_i(segment_bytes),
        .segment_ready_o(segment_ready),
        .slot_ready_i(slot_ready), .slot_tag_i(slot_tag), .slot_take_o(slot_take), .slot_channel_o(slot_channel),
        .valid_o(rd_valid_o), .beat_o(rd_beat_o), .ready_i(rd_ready_i)
    );

    // --- the segment that gets a slot ---
    logic [63:0]      take_destination;
    logic [9:0]       take_bytes;
    logic             take_last, take_interrupt;
    logic [DESTS-1:0] take_dest;
    logic [4:0]       take_word;

    always_comb begin
        take_destination = '0;
        take_bytes = '0;
        take_last = 1'b0;
        take_interrupt = 1'b0;
        take_dest = '0;
        take_word = '0;
        if (slot_take) begin
            take_destination = segment_destination[64 * slot_channel +: 64];
            take_bytes = segment_bytes[10 * slot_channel +: 10];
            take_last = segment_last[slot_channel];
            take_interrupt = segment_interrupt[slot_channel];
            take_dest = segment_dest[DESTS * slot_channel +: DESTS];
            take_word = segment_source[64 * slot_channel + 4 +: 5];
        end
    end

    // --- completions, in the order of the requests ---
    logic         head_valid, head_last, head_interrupt, head_pop, reorder_idle, writer_idle;
    logic [3:0]   head_error;
    logic [1:0]   head_channel;
    logic [63:0]  head_destination;
    logic [9:0]   head_bytes;
    logic [DESTS-1:0] head_dest;
    logic [4:0]   head_word, read_word;
    logic [127:0] read_data;

    assign cpl_ready_o = 1'b1;

    peach2_dmac_reorder u_reorder (
        .clk_i(clk_i), .rst_i(rst_i), .cfg_read_tags_i(cfg_read_tags_i),
        .slot_ready_o(slot_ready), .slot_tag_o(slot_tag), .slot_take_i(slot_take), .take_channel_i(slot_channel),
        .take_destination_i(take_destination), .take_bytes_i(take_bytes), .take_last_i(take_last),
        .take_interrupt_i(take_interrupt), .take_dest_i(take_dest), .take_word_i(take_word),
        .cpl_valid_i(cpl_valid_i), .cpl_beat_i(cpl_beat_i), .unexpected_o(unexpected_o),
        .fetch_header_o(fetch_header), .fetch_channel_o(fetch_channel), .fetch_generation_o(fetch_generation),
        .fetch_error_o(fetch_cpl_error), .fetch_data_o(fetch_data), .fetch_word_o(fetch_word),
        .fetch_expected_i(fetch_expected != 4'd0),
        .head_valid_o(head_valid), .head_error_o(head_error), .head_channel_o(head_channel),
        .head_destination_o(head_destination), .head_bytes_o(head_bytes), .head_last_o(head_last),
        .head_interrupt_o(head_interrupt),
        .head_dest_o(head_dest), .head_word_o(head_word), .head_pop_i(head_pop), .lost_i(lost),
        .read_word_i(read_word), .read_data_o(read_data), .idle_o(reorder_idle)
    );

    peach2_dmac_writer u_writer (
        .clk_i(clk_i), .rst_i(rst_i), .cfg_requester_i(cfg_requester_i), .cfg_mps_log2_i(cfg_mps_log2_i),
        .head_valid_i(head_valid), .head_error_i(head_error), .head_channel_i(head_channel),
        .head_destination_i(head_destination), .head_bytes_i(head_bytes), .head_last_i(head_last),
        .head_interrupt_i(head_interrupt),
        .head_dest_i(head_dest), .head_word_i(head_word), .head_pop_o(head_pop), .read_word_o(read_word),
        .read_data_i(read_data),
        .abort_i(abort), .retire_o(retire), .retire_last_o(retire_last), .retire_interrupt_o(retire_interrupt),
        .retire_error_o(retire_error),
        .notify_valid_i(notify_valid), .notify_address_i(notify_address), .notify_data_i(notify_data),
        .notify_dest_i(notify_dest), .notify_ready_o(notify_ready),
        .message_valid_i(message_valid_i), .message_address_i(message_address_i), .message_value_i(message_value_i),
        .message_ready_o(message_ready_o),
        .valid_o(wr_valid_o), .beat_o(wr_beat_o), .dest_o(wr_dest_o), .ready_i(wr_ready_i), .idle_o(writer_idle)
    );

    // The current completion may still fill a slot that timed out; the data that it writes are never read.
    assign idle_o = channel_idle == 4'hf && fetch_settled == 4'hf && reorder_idle && writer_idle && !rd_valid_o;
endmodule
