// Reorder buffer of the DMAC: a ring of slots, one for each outstanding data read, filled by completions in any order
// and emptied in the order of the requests.
//
// 32 slots of 512 bytes are the 16 KB that the hard IP's receive buffer holds, so that the DMAC may advertise infinite
// completion credits. The generation of a slot, part of the tag, distinguishes a late completion from the expected one.
module peach2_dmac_reorder (
    input  logic         clk_i,
    input  logic         rst_i,
    input  logic [5:0]   cfg_read_tags_i,  // maximum number of slots in use, 1..32

    // a read is sent
    output logic         slot_ready_o,
    output logic [6:0]   slot_tag_o,       // generation, slot
    input  logic         slot_take_i,
    input  logic [1:0]   take_channel_i,
    input  logic [63:0]  take_destination_i,
    input  logic [9:0]   take_bytes_i,
    input  logic         take_last_i,
    input  logic         take_interrupt_i,
    input  logic [peach2_pkg::DESTS-1:0] take_dest_i,
    input  logic [4:0]   take_word_i,      // word of its first byte within 512 B: source[8:4]

    // completions
    input  logic         cpl_valid_i,
    input  logic [peach2_pkg::BEAT_T_BITS-1:0] cpl_beat_i,
    output logic         unexpected_o,

    // to the channels' descriptor fetches
    output logic         fetch_header_o,
    output logic [1:0]   fetch_channel_o,
    output logic [4:0]   fetch_generation_o,
    output logic [3:0]   fetch_error_o,
    output logic         fetch_data_o,
    output logic [127:0] fetch_word_o,
    input  logic         fetch_expected_i,

    // the oldest read, when its data is complete or it failed
    output logic         head_valid_o,
    output logic [3:0]   head_error_o,
    output logic [1:0]   head_channel_o,
    output logic [63:0]  head_destination_o,
    output logic [9:0]   head_bytes_o,
    output logic         head_last_o,
    output logic         head_interrupt_o,
    output logic [peach2_pkg::DESTS-1:0] head_dest_o,
    output logic [4:0]   head_word_o,
    input  logic         head_pop_i,
    input  logic [3:0]   lost_i,           // channels that no longer wait for any read
    // its data: the requested word arrives one cycle later
    input  logic [4:0]   read_word_i,
    output logic [127:0] read_data_o,

    output logic         idle_o
);
    localparam int unsigned SLOTS = 32;
    localparam int unsigned META_BITS = 64 + 10 + 1 + 1 + 2 + 7 + 5;
    localparam int unsigned TIMEOUT_BITS = $clog2(peach2_regs_pkg::TIMEOUT_CYCLES);

    logic [127:0]           data_q [0:SLOTS*32-1];
    logic [META_BITS-1:0]   meta_q [0:SLOTS-1];
    logic [4:0]             word_q [0:SLOTS-1];  // word of the next payload beat
    logic [9:0]             left_q [0:SLOTS-1];  // bytes that have not arrived yet
    logic [3:0]             error_q [0:SLOTS-1];
    logic [1:0]             generation_q [0:SLOTS-1];
    logic [SLOTS-1:0]       open_q, done_q;
    logic [6:0]             tail_q;              // generation and slot of the next read
    logic [4:0]             head_q;
    logic [5:0]             used_q;
    logic [TIMEOUT_BITS:0]  age_q;

    assign slot_ready_o = used_q < cfg_read_tags_i;
    assign slot_tag_o = tail_q;

    // --- completions ---
    peach2_pkg::beat_t       beat;
    peach2_pkg::completion_t header;
    logic                    sop, with_data;
    logic [4:0]              slot;
    logic [9:0]              payload_bytes;
    logic                    is_data;   // answers a data read, not a descriptor fetch
    logic                    expected;  // an open slot of that generation
    logic [3:0]              answer;    // DMA_OK, or the reason for which there is no data
    logic [9:0]              left_after;

    assign beat = cpl_beat_i;
    assign header = beat.data;
    assign sop = cpl_valid_i && beat.sop;
    assign slot = header.tag[4:0];

    always_comb begin
        with_data = 1'b0;
        payload_bytes = '0;
        is_data = 1'b0;
        left_after = '0;
        expected = 1'b0;
        answer = peach2_regs_pkg::DMA_OK;
        if (sop) begin
            with_data = header.dw0.fmt == peach2_pkg::FMT_3DW_DATA;
            payload_bytes = {header.dw0.length[7:0], 2'b00};
            is_data = !header.tag[7];
            left_after = left_q[slot] - payload_bytes;
            expected = is_data && open_q[slot] && !done_q[slot] && generation_q[slot] == header.tag[6:5] &&
                       (!with_data || (payload_bytes <= left_q[slot] && header.dw0.length[9:8] == 2'd0));
            unique case (header.status)
                peach2_pkg::CPL_SUCCESS: answer = with_data ? peach2_regs_pkg::DMA_OK : peach2_regs_pkg::DMA_READ_ABORT;
                peach2_pkg::CPL_UNSUPPORTED: answer = peach2_regs_pkg::DMA_READ_UR;
                default: answer = peach2_regs_pkg::DMA_READ_ABORT;
            endcase
        end
    end

    // the current completion
    logic       filling_q, fetching_q; // its payload goes to a slot; to a descriptor fetch
    logic [4:0] fill_slot_q, fill_word_q;
    logic       write;
    assign write = cpl_valid_i && !beat.sop && filling_q;

    assign fetch_header_o = sop && !is_data;
    assign fetch_channel_o = header.tag[1:0];
    assign fetch_generation_o = header.tag[6:2];
    assign fetch_error_o = answer;
    assign fetch_data_o = cpl_valid_i && !beat.sop && fetching_q;
    assign fetch_word_o = beat.data;
    assign unexpected_o = sop && (is_data ? !expected : !fetch_expected_i);

    always_ff @(posedge clk_i) begin
        if (write) begin
            data_q[{fill_slot_q, fill_word_q}] <= beat.data;
        end
    end

    // A completion for the oldest read begins, or is in progress: the read is neither lost nor dropped in this cycle.
    logic active; // otherwise nothing changes in this cycle
    logic head_filling, timed_out;
    assign active = cpl_valid_i || slot_take_i || used_q != 6'd0;

    always_comb begin
        head_filling = 1'b0;
        timed_out = 1'b0;
        head_valid_o = 1'b0;
        if (used_q != 6'd0) begin
            head_filling = (filling_q && fill_slot_q == head_q) || (sop && is_data && slot == head_q);
            timed_out = age_q[TIMEOUT_BITS] && !head_filling;
            head_valid_o = done_q[head_q] || (lost_i[head_channel_o] && !head_filling);
        end
    end

    always_ff @(posedge clk_i) begin
        if (rst_i) begin
            filling_q <= 1'b0;
            fetching_q <= 1'b0;
            fill_slot_q <= 5'd0;
            fill_word_q <= 5'd0;
            open_q <= '0;
            done_q <= '0;
            tail_q <= 7'd0;
            head_q <= 5'd0;
            used_q <= 6'd0;
            age_q <= '0;
        end else if (active) begin
            if (sop) begin
                filling_q <= expected && answer == peach2_regs_pkg::DMA_OK && !beat.eop;
                fetching_q <= !is_data;
                fill_slot_q <= slot;
                fill_word_q <= word_q[slot];
            end else if (write) begin
                fill_word_q <= fill_word_q + 5'd1;
                filling_q <= !beat.eop;
            end

            // a slot is done when its last beat has arrived, or at once when no beat will arrive
            if (write && beat.eop && left_q[fill_slot_q] == 10'd0) begin
                done_q[fill_slot_q] <= 1'b1;
            end
            if (sop && expected && answer != peach2_regs_pkg::DMA_OK) begin
                done_q[slot] <= 1'b1;
            end
            if (timed_out && open_q[head_q]) begin
                done_q[head_q] <= 1'b1;
            end

            if (slot_take_i) begin
                open_q[tail_q[4:0]] <= 1'b1;
                done_q[tail_q[4:0]] <= 1'b0;
                tail_q <= tail_q + 7'd1;
            end
            if (head_pop_i) begin
                open_q[head_q] <= 1'b0;
                head_q <= head_q + 5'd1;
            end
            used_q <= used_q + {5'd0, slot_take_i} - {5'd0, head_pop_i};
            age_q <= (used_q == 6'd0 || head_pop_i || done_q[head_q]) ? '0 : age_q + 1'b1;
        end
    end

    always_ff @(posedge clk_i) begin
        if (slot_take_i) begin
            meta_q[tail_q[4:0]] <= {take_destination_i, take_bytes_i, take_last_i, take_interrupt_i, take_channel_i,
                take_dest_i,
                                    take_word_i};
            generation_q[tail_q[4:0]] <= tail_q[6:5];
        end
    end

    // word_q, left_q and error_q have two writers each: the request and the completion, never for one slot at once
    always_ff @(posedge clk_i) begin
        if (active) begin
            if (slot_take_i) begin
                word_q[tail_q[4:0]] <= take_word_i;
                left_q[tail_q[4:0]] <= take_bytes_i;
                error_q[tail_q[4:0]] <= peach2_regs_pkg::DMA_OK;
            end
            if (write && beat.eop) begin
                word_q[fill_slot_q] <= fill_word_q + 5'd1;
            end
            if (sop && expected && answer == peach2_regs_pkg::DMA_OK) begin
                left_q[slot] <= left_after;
            end
            if (sop && expected && answer != peach2_regs_pkg::DMA_OK) begin
                error_q[slot] <= answer;
            end
            if (timed_out && open_q[head_q] && !done_q[head_q]) begin
                error_q[head_q] <= peach2_regs_pkg::DMA_READ_LOST;
            end
        end
    end

    // --- the oldest read ---
    assign head_error_o = error_q[head_q];
    assign {head_destination_o, head_bytes_o, head_last_o, head_interrupt_o, head_channel_o, head_dest_o, head_word_o} =
        meta_q[head_q];

    always_ff @(posedge clk_i) begin
        read_data_o <= data_q[{head_q, read_word_i}];
    end

    assign idle_o = used_q == 6'd0;

    // completions are recognised only by their tag; their words are counted, not addressed
    logic unused;
    assign unused = &{1'b0, beat.empty, header};

`ifndef SYNTHESIS
    slots_in_use_never_exceed_the_limit : assert property (@(posedge clk_i) disable iff (rst_i)
        used_q <= 6'd32);
    a_slot_is_taken_only_when_free : assert property (@(posedge clk_i) disable iff (rst_i)
        !(slot_take_i && open_q[tail_q[4:0]]));
    only_a_finished_read_is_popped : assert property (@(posedge clk_i) disable iff (rst_i)
        !(head_pop_i && !head_valid_o));
`endif
endmodule
