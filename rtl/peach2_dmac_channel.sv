// Sequencer of one DMA channel: takes transfers from the registers or from a chain, checks them, cuts them into read
// segments, waits until all are written, and reports the completion.
//
// A transfer is one run of bytes or rows of a block (docs/decisions/0005-whole-board.md). A segment never leaves its
// row and never crosses a boundary of cfg_read_bytes in the source, hence never 4 KB. After an error no further
// segment is issued and none of the channel's outstanding ones is written (abort_o); the remote side is not notified.
module peach2_dmac_channel #(
    parameter int unsigned OUTSTANDING_BITS = 6 // outstanding segments: up to 2**BITS - 1
) (
    input  logic         clk_i,
    input  logic         rst_i,
    input  logic [15:0]  cfg_start_cycles_i,
    input  logic [15:0]  cfg_fetch_left_i,   // at most cfg_start_cycles_i
    input  logic [15:0]  cfg_finish_cycles_i,
    input  logic [9:0]   cfg_read_bytes_i,

    // registers; all are copied at the start
    input  peach2_regs_pkg::dmac_rw_t    regs_i,
    input  peach2_regs_pkg::dmac_pulse_t pulse_i,
    input  logic         regs_read_i,      // regs_o may be read in this cycle; otherwise it is zero
    output peach2_regs_pkg::dmac_ro_t    regs_o,

    // routes, for the checks
    input  logic [63:peach2_regs_pkg::WINDOW_BITS]  window_base_i,
    input  logic [peach2_regs_pkg::ROUTE_COUNT*peach2_regs_pkg::ROUTE_RW_BITS-1:0] routes_i,

    // descriptor fetch
    output logic         fetch_begin_o,
    output logic [63:0]  fetch_address_o,
    output logic         fetch_board_o,
    output logic         fetch_stop_o,
    input  logic         fetch_settled_i,
    input  logic         fetch_valid_i,
    input  logic         fetch_fence_i,
    input  logic [255:0] fetch_descriptor_i,
    output logic         fetch_ready_o,
    input  logic         fetch_failed_i,
    input  logic [3:0]   fetch_error_i,

    // segments
    output logic         segment_valid_o,
    output logic [63:0]  segment_source_o,
    output logic [63:0]  segment_destination_o,
    output logic [9:0]   segment_bytes_o,
    output logic         segment_last_o,   // of its transfer
    output logic         segment_interrupt_o, // raise one when the segment is written
    output logic [peach2_pkg::DESTS-1:0] segment_dest_o,
    input  logic         segment_ready_i,
    input  logic         retire_i,         // a segment of this channel is written or dropped
    input  logic         retire_last_i,    // it was the last of its transfer
    input  logic         retire_interrupt_i,
    input  logic [3:0]   retire_error_i,
    output logic         abort_o,          // drop the channel's segments
    output logic         lost_o,           // and do not wait for their reads

    // completion status words
    output logic         notify_valid_o,
    output logic [63:0]  notify_address_o,
    output logic [63:0]  notify_data_o,
    output logic [peach2_pkg::DESTS-1:0] notify_dest_o,
    input  logic         notify_ready_i,

    output logic         interrupt_o,      // pulse
    output logic         idle_o
);
    typedef enum logic [3:0] {
        CHANNEL_IDLE,
        CHANNEL_START,         // the sequencer's own overhead; a chain's first fetch may begin in this state
        CHANNEL_NEXT,          // take a transfer
        CHANNEL_CHECK_SOURCE,
        CHANNEL_CHECK_DESTINATION,
        CHANNEL_SEGMENT,
        CHANNEL_DRAIN,         // until everything is written
        CHANNEL_FINISH,        // the sequencer's overhead again
        CHANNEL_NOTIFY_REMOTE,
        CHANNEL_NOTIFY_LOCAL
    } state_e;

    state_e      state_d, state_q;
    logic [15:0] wait_d, wait_q;
    logic [63:0] source_q, destination_q;
    logic [23:0] left_q;              // bytes of the transfer that are not yet in a segment
    logic [23:0] row_left_q;      // the same for the row
    logic [63:0] row_source_q, row_destination_q; // start of the row
    logic [17:0] width_q;            // bytes of a row
    logic [21:0] source_pitch_q, destination_pitch_q;
    logic        stride_q;
    logic        interrupt_q;    // of the descriptor
    logic [63:peach2_regs_pkg::BLOCK_BITS] block_q; // 8 GB block of the destination
    logic        in_window_q;    // the destination lies in the window
    logic [63:peach2_regs_pkg::BLOCK_BITS] source_block_q; // the same for the source
    logic        source_in_window_q;
    logic        length_bad_q;
    logic        reserved_q;      // reserved bits of the descriptor are set
    logic        last_q;              // the transfer is the chain's last
    logic [peach2_pkg::DESTS-1:0] dest_q;
    logic [3:0]  error_d, error_q;
    logic        done_d, done_q;
    logic [1:0]  mode_q;
    logic [63:0] notify_local_address_q, notify_remote_address_q;
    logic [31:0] notify_value_q;
    logic        notify_local_q, notify_remote_q, end_interrupt_q;
    logic [7:0]  ignored_d, ignored_q;
    logic [31:0] completed_d, completed_q;
    logic [OUTSTANDING_BITS-1:0] outstanding_d, outstanding_q;

    peach2_regs_pkg::descriptor_t descriptor;
    logic        starts, chained;
    logic        active; // otherwise nothing changes in this cycle
    logic [1:0]  start_mode;

    assign descriptor = fetch_descriptor_i;
    assign active = state_q != CHANNEL_IDLE || pulse_i.control_start;
    assign starts = pulse_i.control_start && state_q == CHANNEL_IDLE;
    assign chained = mode_q != peach2_regs_pkg::MODE_REGISTER;
    assign start_mode = regs_i.control.mode;

    // Bits 16:15 of an offset in this board's block: its internal memory.
    function automatic logic in_memory(input logic [1:0] region);
        in_memory = region == peach2_regs_pkg::MEMORY_BASE[16:15];
    endfunction

    // --- one route look-up, shared by the checks ---
    logic [63:0] route_address;
    logic        in_window;
    logic [4:0]  hit;
    logic        routable;
    logic [peach2_pkg::DESTS-1:0] route_dest;

    always_comb begin
        route_address = '0;
        if (active) begin
            unique case (state_q)
                CHANNEL_CHECK_SOURCE: route_address = source_q;
                CHANNEL_NOTIFY_LOCAL: route_address = notify_local_address_q;
                CHANNEL_NOTIFY_REMOTE: route_address = notify_remote_address_q;
                CHANNEL_CHECK_DESTINATION: route_address = destination_q;
                default: ;
            endcase
        end
    end

    peach2_route u_route (
        .address_i(route_address), .window_base_i(window_base_i), .routes_i(routes_i), .in_window_o(in_window), .hit_o(hit)
    );
    // A transfer to this board must address its memory.
    always_comb begin
        routable = 1'b0;
        route_dest = '0;
        if (active) begin
            routable = !in_window ||
                       (hit != 5'd0 && (!hit[peach2_pkg::DEST_LOCAL] || in_memory(route_address[16:15])));
            route_dest = in_window ? {2'b00, hit} : 7'd1 << peach2_pkg::DEST_N;
        end
    end

    // --- the current segment ---
    logic [9:0] offset, to_boundary, segment_bytes;
    // A transfer may not leave the 8 GB block, or the space outside the window, for which it was checked at its
    // beginning; a transfer to this board must stay in its memory.
    logic [63:0] source_end, destination_end;
    logic        leaves_window;

    always_comb begin
        offset = '0;
        to_boundary = '0;
        segment_bytes = '0;
        source_end = '0;
        destination_end = '0;
        leaves_window = 1'b0;
        segment_valid_o = 1'b0;
        segment_last_o = 1'b0;
        if (state_q == CHANNEL_SEGMENT) begin
            offset = source_q[9:0] & (cfg_read_bytes_i - 10'd1);
            to_boundary = cfg_read_bytes_i - offset;
            segment_bytes = row_left_q < {14'd0, to_boundary} ? row_left_q[9:0] : to_boundary;
            source_end = source_q + {54'd0, segment_bytes} - 64'd1;
            destination_end = destination_q + {54'd0, segment_bytes} - 64'd1;
            leaves_window = (destination_end[63:peach2_regs_pkg::WINDOW_BITS] == window_base_i) != in_window_q ||
                     (in_window_q && destination_end[63:peach2_regs_pkg::BLOCK_BITS] != block_q) ||
                     (dest_q[peach2_pkg::DEST_LOCAL] && !in_memory(destination_end[16:15])) ||
                     (source_end[63:peach2_regs_pkg::WINDOW_BITS] == window_base_i) != source_in_window_q ||
                     (source_in_window_q && source_end[63:peach2_regs_pkg::BLOCK_BITS] != source_block_q);
            segment_valid_o = error_q == peach2_regs_pkg::DMA_OK && !leaves_window &&
                              outstanding_q != {OUTSTANDING_BITS{1'b1}};
            segment_last_o = left_q == {14'd0, segment_bytes};
        end
    end

    assign segment_source_o = source_q;
    assign segment_destination_o = destination_q;
    assign segment_bytes_o = segment_bytes;
    assign segment_interrupt_o = segment_last_o && interrupt_q;
    assign segment_dest_o = dest_q;
    assign abort_o = error_q != peach2_regs_pkg::DMA_OK;
    assign lost_o = error_q == peach2_regs_pkg::DMA_READ_LOST;

    // --- status ---
    logic notify_state;
    assign notify_state = state_q == CHANNEL_NOTIFY_LOCAL || state_q == CHANNEL_NOTIFY_REMOTE;

    peach2_regs_pkg::dmac_status_t status, end_status;
    peach2_regs_pkg::completion_status_t notify_word;
    always_comb begin
        status = '0;
        end_status = '0;
        notify_word = '0;
        regs_o = '0;
        if (regs_read_i || notify_state) begin
            status.busy = !idle_o;
            status.done = done_q;
            status.error = error_q;
            status.ignored_starts = ignored_q;
            end_status = status;
            end_status.busy = 1'b0;
            end_status.done = 1'b1;
            notify_word.value = notify_value_q;
            notify_word.status = end_status;
            regs_o.status = status;
            regs_o.completed = completed_q;
        end
    end

    // --- notification ---
    logic notify_misaligned;
    logic notify_wanted;
    // A status word is offered until it has left, by the route of the first cycle: routes may change meanwhile.
    logic notify_held_q;
    logic [peach2_pkg::DESTS-1:0] notify_dest_q;
    always_comb begin
        notify_misaligned = 1'b0;
        notify_wanted = 1'b0;
        notify_valid_o = 1'b0;
        notify_dest_o = '0;
        if (notify_state) begin
            notify_misaligned = route_address[2:0] != 3'd0;
            notify_wanted = state_q == CHANNEL_NOTIFY_LOCAL ? notify_local_q
                                                            : notify_remote_q && error_q == peach2_regs_pkg::DMA_OK;
            notify_valid_o = notify_held_q || (notify_wanted && routable && !notify_misaligned);
            notify_dest_o = notify_held_q ? notify_dest_q : route_dest;
        end
    end
    assign notify_address_o = route_address;
    assign notify_data_o = notify_word;

    assign fetch_address_o = source_q;
    assign fetch_board_o = mode_q == peach2_regs_pkg::MODE_CHAIN_BOARD;
    assign fetch_stop_o = error_q != peach2_regs_pkg::DMA_OK;
    always_comb begin
        fetch_begin_o = 1'b0;
        fetch_ready_o = 1'b0;
        if (state_q == CHANNEL_START) begin
            fetch_begin_o = wait_q == cfg_fetch_left_i && chained && mode_q != 2'd3;
        end
        // A fence holds its descriptor until everything before it is written.
        if (state_q == CHANNEL_NEXT) begin
            fetch_ready_o = chained && (!fetch_fence_i || outstanding_q == '0);
        end
    end

    logic misaligned; // the board moves whole DWs and has no shifter
    always_comb begin
        misaligned = 1'b0;
        if (state_q == CHANNEL_CHECK_SOURCE) begin
            misaligned = source_q[1:0] != 2'd0 || left_q[1:0] != 2'd0 || source_q[3:0] != destination_q[3:0] ||
                         (stride_q && (width_q[1:0] != 2'd0 || source_pitch_q[1:0] != 2'd0 ||
                                       source_pitch_q[3:0] != destination_pitch_q[3:0]));
        end
    end

    // --- states ------------------------------------------------------------------------------------------------------

    logic takes, moves; // a descriptor is taken; a segment goes
    assign takes = fetch_valid_i && fetch_ready_o;
    assign moves = segment_valid_o && segment_ready_i;

    always_comb begin
        state_d = state_q;
        wait_d = wait_q;
        error_d = error_q;
        done_d = done_q;

        if (active) begin
            unique case (state_q)
                CHANNEL_IDLE: begin
                    if (starts) begin
                        state_d = CHANNEL_START;
                        wait_d = cfg_start_cycles_i;
                        done_d = 1'b0;
                    end
                end
                CHANNEL_START: begin
                    wait_d = wait_q - 16'd1;
                    if (wait_q == 16'd0) begin
                        wait_d = 16'd0;
                        state_d = chained ? CHANNEL_NEXT : CHANNEL_CHECK_SOURCE;
                        if (mode_q == 2'd3) begin
                            error_d = peach2_regs_pkg::DMA_INVALID;
                            state_d = CHANNEL_DRAIN;
                        end
                    end
                end
                CHANNEL_NEXT: begin
                    if (error_q != peach2_regs_pkg::DMA_OK) begin
                        state_d = CHANNEL_DRAIN;
                    end else if (takes) begin
                        state_d = CHANNEL_CHECK_SOURCE;
                    end else if (fetch_failed_i) begin
                        error_d = fetch_error_i;
                        state_d = CHANNEL_DRAIN;
                    end
                end
                CHANNEL_CHECK_SOURCE: begin
                    state_d = CHANNEL_DRAIN;
                    if (reserved_q) begin
                        error_d = peach2_regs_pkg::DMA_INVALID;
                    end else if (length_bad_q) begin
                        error_d = peach2_regs_pkg::DMA_LENGTH;
                    end else if (misaligned) begin
                        error_d = peach2_regs_pkg::DMA_MISALIGNED;
                    end else if (in_window && !hit[peach2_pkg::DEST_N]) begin
                        error_d = peach2_regs_pkg::DMA_UNROUTABLE;
                    end else begin
                        state_d = CHANNEL_CHECK_DESTINATION;
                    end
                end
                CHANNEL_CHECK_DESTINATION: begin
                    state_d = CHANNEL_SEGMENT;
                    if (!routable) begin
                        error_d = peach2_regs_pkg::DMA_UNROUTABLE;
                        state_d = CHANNEL_DRAIN;
                    end
                end
                CHANNEL_SEGMENT: begin
                    if (error_q != peach2_regs_pkg::DMA_OK) begin
                        state_d = CHANNEL_DRAIN;
                    end else if (leaves_window) begin
                        error_d = peach2_regs_pkg::DMA_UNROUTABLE;
                        state_d = CHANNEL_DRAIN;
                    end else if (moves && segment_last_o) begin
                        state_d = last_q ? CHANNEL_DRAIN : CHANNEL_NEXT;
                    end
                end
                CHANNEL_DRAIN: begin
                    if (outstanding_q == '0 && fetch_settled_i) begin
                        state_d = CHANNEL_FINISH;
                        wait_d = cfg_finish_cycles_i;
                    end
                end
                CHANNEL_FINISH: begin
                    wait_d = wait_q - 16'd1;
                    if (wait_q == 16'd0) begin
                        wait_d = 16'd0;
                        state_d = CHANNEL_NOTIFY_REMOTE;
                    end
                end
                CHANNEL_NOTIFY_REMOTE: begin // first, so that the local status reports a failure of this one
                    if (notify_ready_i || !notify_valid_o) begin
                        state_d = CHANNEL_NOTIFY_LOCAL;
                    end
                end
                CHANNEL_NOTIFY_LOCAL: begin
                    if (notify_ready_i || !notify_valid_o) begin
                        state_d = CHANNEL_IDLE;
                        done_d = 1'b1;
                    end
                end
                default: state_d = CHANNEL_IDLE;
            endcase

            // errors of returned segments
            if (retire_i && retire_error_i != peach2_regs_pkg::DMA_OK) begin
                error_d = retire_error_i;
            end
            if (notify_state && !notify_valid_o && notify_wanted) begin
                error_d = notify_misaligned ? peach2_regs_pkg::DMA_MISALIGNED : peach2_regs_pkg::DMA_UNROUTABLE;
            end
            if (error_q != peach2_regs_pkg::DMA_OK) begin // the first error is kept
                error_d = error_q;
            end
            if (starts) begin
                error_d = peach2_regs_pkg::DMA_OK;
            end
        end
    end

    // --- the current transfer ----------------------------------------------------------------------------------------

    logic [23:0] row_after, left_after;
    assign row_after = row_left_q - {14'd0, segment_bytes};
    assign left_after = left_q - {14'd0, segment_bytes};

    always_ff @(posedge clk_i) begin
        if (active) begin
            if (starts) begin
                // a chain's first descriptor waits in source_q for the fetch unit to begin
                source_q <= start_mode == peach2_regs_pkg::MODE_REGISTER ? regs_i.source : regs_i.descriptor;
                destination_q <= regs_i.destination;
                left_q <= regs_i.length[peach2_regs_pkg::LENGTH_BITS-1:0];
                stride_q <= regs_i.control.stride;
                width_q <= regs_i.stride_width[peach2_regs_pkg::WIDTH_BITS-1:0];
                source_pitch_q <= regs_i.stride_source_pitch[peach2_regs_pkg::PITCH_BITS-1:0];
                destination_pitch_q <= regs_i.stride_destination_pitch[peach2_regs_pkg::PITCH_BITS-1:0];
                length_bad_q <= regs_i.length == 32'd0 || regs_i.length[31:peach2_regs_pkg::LENGTH_BITS] != '0 ||
                                (regs_i.control.stride &&
                                 (regs_i.stride_width == 32'd0 || regs_i.stride_width[31:peach2_regs_pkg::WIDTH_BITS] != '0 || regs_i.stride_source_pitch[31:peach2_regs_pkg::PITCH_BITS] != '0 ||
                                  regs_i.stride_destination_pitch[31:peach2_regs_pkg::PITCH_BITS] != '0));
                reserved_q <= 1'b0;
                interrupt_q <= 1'b0;
                last_q <= 1'b1;
            end
            if (takes) begin
                source_q <= descriptor.source;
                destination_q <= descriptor.destination;
                left_q <= descriptor.length;
                stride_q <= descriptor.stride;
                width_q <= {descriptor.width, 2'd0};
                source_pitch_q <= {descriptor.source_pitch_19_16, descriptor.source_pitch_15_0, 2'd0};
                destination_pitch_q <= {descriptor.destination_pitch, 2'd0};
                length_bad_q <= descriptor.length == 24'd0 || (descriptor.stride && descriptor.width == 16'd0);
                reserved_q <= descriptor.reserved != 4'd0;
                interrupt_q <= descriptor.interrupt;
                last_q <= descriptor.last;
            end
            if (state_q == CHANNEL_CHECK_SOURCE) begin
                source_block_q <= source_q[63:peach2_regs_pkg::BLOCK_BITS];
                source_in_window_q <= in_window;
            end
            if (state_q == CHANNEL_CHECK_DESTINATION) begin
                dest_q <= route_dest;
                block_q <= destination_q[63:peach2_regs_pkg::BLOCK_BITS];
                in_window_q <= in_window;
                row_source_q <= source_q;
                row_destination_q <= destination_q;
                row_left_q <= stride_q && {6'd0, width_q} < left_q ? {6'd0, width_q} : left_q;
            end
            if (notify_state) begin
                notify_dest_q <= notify_dest_o;
            end
            if (moves) begin
                source_q <= source_q + {54'd0, segment_bytes};
                destination_q <= destination_q + {54'd0, segment_bytes};
                left_q <= left_after;
                row_left_q <= row_after;
                if (row_after == 24'd0) begin // the next row, if there is one
                    source_q <= row_source_q + {42'd0, source_pitch_q};
                    destination_q <= row_destination_q + {42'd0, destination_pitch_q};
                    row_source_q <= row_source_q + {42'd0, source_pitch_q};
                    row_destination_q <= row_destination_q + {42'd0, destination_pitch_q};
                    row_left_q <= {6'd0, width_q} < left_after ? {6'd0, width_q} : left_after;
                end
            end
        end
    end

    always_comb begin
        outstanding_d = outstanding_q;
        completed_d = completed_q;
        ignored_d = ignored_q;
        if (active) begin
            if (pulse_i.control_start && !starts && ignored_q != 8'hff) begin
                ignored_d = ignored_q + 8'd1;
            end
            if (moves && !retire_i) begin
                outstanding_d = outstanding_q + 1'b1;
            end else if (!moves && retire_i) begin
                outstanding_d = outstanding_q - 1'b1;
            end
            if (starts) begin
                completed_d = 32'd0;
            end else if (retire_i && retire_last_i && retire_error_i == peach2_regs_pkg::DMA_OK && !abort_o) begin
                completed_d = completed_q + 32'd1;
            end
        end
    end

    always_ff @(posedge clk_i) begin
        if (rst_i) begin
            state_q <= CHANNEL_IDLE;
            wait_q <= 16'd0;
            error_q <= peach2_regs_pkg::DMA_OK;
            done_q <= 1'b0;
            completed_q <= 32'd0;
            outstanding_q <= '0;
            ignored_q <= 8'd0;
            notify_held_q <= 1'b0;
        end else if (active) begin
            notify_held_q <= notify_valid_o && !notify_ready_i;
            state_q <= state_d;
            wait_q <= wait_d;
            error_q <= error_d;
            done_q <= done_d;
            completed_q <= completed_d;
            outstanding_q <= outstanding_d;
            ignored_q <= ignored_d;
        end
    end

    always_ff @(posedge clk_i) begin
        if (rst_i) begin
            mode_q <= peach2_regs_pkg::MODE_REGISTER;
            notify_local_q <= 1'b0;
            notify_remote_q <= 1'b0;
            end_interrupt_q <= 1'b0;
        end else if (starts) begin
            mode_q <= start_mode;
            notify_local_q <= regs_i.control.notify_local;
            notify_remote_q <= regs_i.control.notify_remote;
            end_interrupt_q <= regs_i.control.interrupt;
            notify_local_address_q <= regs_i.notify_local;
            notify_remote_address_q <= regs_i.notify_remote;
            notify_value_q <= regs_i.notify_value;
        end
    end

    assign idle_o = state_q == CHANNEL_IDLE;

    assign interrupt_o = (done_d && !done_q && end_interrupt_q) ||
                         (retire_i && retire_interrupt_i && retire_error_i == peach2_regs_pkg::DMA_OK && !abort_o);

    // the fetch unit follows the chain; bits of registers without a field
    logic unused;
    assign unused = &{1'b0, regs_i, descriptor.next, descriptor.fence, source_end[32:0], destination_end[32:17],
                      destination_end[14:0]};

`ifndef SYNTHESIS
    outstanding_segments_never_underflow : assert property (@(posedge clk_i) disable iff (rst_i)
        !(retire_i && outstanding_q == '0));
    a_channel_goes_idle_only_when_everything_is_written : assert property (@(posedge clk_i) disable iff (rst_i)
        !(state_q == CHANNEL_IDLE && outstanding_q != '0));
`endif
endmodule
