// Descriptor fetch of one DMA channel: walks a chain ahead of the channel and passes on its descriptors in order.
//
// Descriptors come from host memory or from the board's memory. Reads of host memory use the channel's own tag, up to
// cfg_prefetch descriptors at a time, and assume that the chain is contiguous; a descriptor that does not follow its
// predecessor's `next` is dropped and fetched again. A chain that loops is detected with Brent's algorithm, which needs
// one saved address and no limit on the length of a chain.
module peach2_dmac_fetch #(
    parameter int unsigned DEPTH = 8, // descriptors held; a power of two, at least 8
    parameter int unsigned CHANNEL = 0
) (
    input  logic         clk_i,
    input  logic         rst_i,
    input  logic [2:0]   cfg_prefetch_i,

    // begin_i starts a walk at address_i; stop_i abandons it
    input  logic         begin_i,
    input  logic         board_i,      // chain in the board's memory
    input  logic [63:0]  address_i,
    input  logic         stop_i,
    output logic         settled_o,    // no read is in progress: a new walk may begin

    // descriptors, in chain order
    output logic         valid_o,
    output logic         fence_o,      // of the descriptor that is valid
    output logic [255:0] descriptor_o, // while it is taken
    input  logic         ready_i,
    output logic         failed_o,     // no descriptor follows, for the reason in error_o
    output logic [3:0]   error_o,

    // read requests to host memory
    output logic         read_valid_o,
    output logic [63:0]  read_address_o,
    output logic [7:0]   read_bytes_o,
    output logic [4:0]   read_generation_o,
    input  logic         read_ready_i,

    // completions for any channel's descriptor reads
    input  logic         cpl_header_i, // first beat of a completion
    input  logic [1:0]   cpl_channel_i,
    input  logic [4:0]   cpl_generation_i,
    input  logic [3:0]   cpl_error_i,  // DMA_OK, or the reason for which it carries no data
    input  logic         cpl_data_i,   // payload beat of the completion with the last header
    input  logic [127:0] cpl_word_i,
    output logic         cpl_expected_o, // answer to cpl_header_i: it is for this channel's outstanding read

    // the board's memory
    output logic         imem_valid_o,
    output logic [9:0]   imem_index_o,
    input  logic         imem_ready_i,
    input  logic         imem_rvalid_i,
    input  logic [255:0] imem_rdata_i
);
    localparam int unsigned DEPTH_BITS = $clog2(DEPTH);
    localparam int unsigned MEMORY_BITS = $clog2(peach2_regs_pkg::MEMORY_DESCRIPTORS) + 5; // bytes
    localparam int unsigned TIMEOUT_BITS = $clog2(peach2_regs_pkg::TIMEOUT_CYCLES);

    generate
        if (DEPTH < 8 || (DEPTH & (DEPTH - 1)) != 0) begin : g_illegal_depth
            $error("DEPTH must be a power of two and at least 8");
        end
    endgenerate

    typedef enum logic [1:0] {
        FETCH_IDLE,
        FETCH_END,     // last descriptor seen, or failed
        FETCH_REQUEST, // next_q has to be read
        FETCH_WAIT     // answers are outstanding
    } state_e;

    state_e                state_d, state_q;
    logic                  walking; // otherwise only held descriptors are taken
    logic                  board_q;
    logic [63:0]           next_d, next_q;         // address of the next descriptor
    logic [63:0]           expected_d, expected_q; // address of the descriptor that arrives next
    logic                  follows_d, follows_q;   // the burst still follows the chain
    logic [2:0]            due_d, due_q;           // descriptors of the burst that have not arrived yet
    logic [4:0]            generation_d, generation_q;
    logic                  hit_d, hit_q;           // the current completion is for this channel
    logic                  half_d, half_q;         // lower half of a descriptor is in low_q
    logic [127:0]          low_q;
    logic [3:0]            error_d, error_q;
    logic [TIMEOUT_BITS:0] age_d, age_q;

    // Brent: saved_q is compared with every next; it is updated at powers of two.
    logic [63:0]           saved_q;
    logic [31:0]           steps_q, power_q;

    logic [255:0]          held_q [0:DEPTH-1];
    logic [DEPTH_BITS:0]   write_q, read_q;
    logic [DEPTH_BITS:0]   count;

    // --- the burst to request ---
    logic       address_bad;
    logic [7:0] to_boundary; // descriptors up to the next 4 KB boundary
    logic [2:0] burst;
    logic       room;

    assign walking = !settled_o || begin_i;
    assign count = write_q - read_q;

    always_comb begin
        room = 1'b0;
        address_bad = 1'b0;
        to_boundary = '0;
        burst = '0;
        read_valid_o = 1'b0;
        imem_valid_o = 1'b0;
        if (state_q == FETCH_REQUEST) begin
            room = count + {1'b0, cfg_prefetch_i} <= DEPTH[DEPTH_BITS:0];
            address_bad = next_q[4:0] != 5'd0 || (board_q && next_q[63:MEMORY_BITS] != '0);
            to_boundary = 8'd128 - {1'b0, next_q[11:5]};
            burst = board_q ? 3'd1 : (to_boundary < {5'd0, cfg_prefetch_i} ? to_boundary[2:0] : cfg_prefetch_i);
            read_valid_o = !board_q && !address_bad && room && !stop_i;
            imem_valid_o = board_q && !address_bad && room && !stop_i;
        end
    end

    assign read_address_o = next_q;
    assign read_bytes_o = {burst, 5'd0};
    assign read_generation_o = generation_q;
    assign imem_index_o = next_q[MEMORY_BITS-1:5];

    // --- what arrives ---
    logic                   arrived; // one whole descriptor
    peach2_regs_pkg::descriptor_t descriptor;
    logic                   accept;
    logic                   loops;
    logic [63:0]            follower; // address of the descriptor after the arrived one

    // hit_q is set only in FETCH_WAIT.
    always_comb begin
        cpl_expected_o = 1'b0;
        arrived = 1'b0;
        accept = 1'b0;
        loops = 1'b0;
        descriptor = '0;
        follower = '0;
        if (state_q == FETCH_WAIT) begin
            cpl_expected_o = !board_q && due_q != 3'd0 && cpl_header_i && cpl_channel_i == CHANNEL[1:0] &&
                             cpl_generation_i == generation_q;
            arrived = board_q ? imem_rvalid_i : cpl_data_i && hit_q && half_q;
            if (arrived) begin
                descriptor = board_q ? imem_rdata_i : {cpl_word_i, low_q};
                accept = follows_q;
                follower = {24'd0, descriptor.next};
                loops = accept && !descriptor.last && follower == saved_q;
            end
        end
    end

    // The chain's last descriptor was accepted.
    logic ended_d, ended_q;

    always_comb begin
        hit_d = hit_q;
        half_d = half_q;
        ended_d = ended_q;
        if (walking) begin
            ended_d = !begin_i && (ended_q || (accept && descriptor.last));
            if (cpl_header_i) begin
                hit_d = cpl_expected_o && cpl_error_i == peach2_regs_pkg::DMA_OK;
            end
            if (state_d != FETCH_WAIT) begin // all has arrived, or was given up: later data are ignored
                hit_d = 1'b0;
            end
            if (cpl_data_i && hit_q) begin
                half_d = !half_q;
            end
            if (begin_i) begin
                half_d = 1'b0;
            end
        end
    end

    always_ff @(posedge clk_i) begin
        if (begin_i) begin
            saved_q <= address_i;
            steps_q <= 32'd0;
            power_q <= 32'd1;
        end else if (accept) begin
            steps_q <= steps_q + 32'd1;
            if (steps_q + 32'd1 == power_q) begin
                saved_q <= follower;
                steps_q <= 32'd0;
                power_q <= power_q << 1;
            end
        end
    end

    always_comb begin
        state_d = state_q;
        next_d = next_q;
        expected_d = expected_q;
        follows_d = follows_q;
        due_d = due_q;
        generation_d = generation_q;
        error_d = error_q;
        age_d = age_q;

        if (walking) begin
            unique case (state_q)
                FETCH_IDLE, FETCH_END: ;
                FETCH_REQUEST: begin
                    age_d = '0;
                    if (stop_i) begin
                        state_d = FETCH_END;
                    end else if (address_bad) begin
                        state_d = FETCH_END;
                        error_d = peach2_regs_pkg::DMA_DESCRIPTOR;
                    end else if ((read_valid_o && read_ready_i) || (imem_valid_o && imem_ready_i)) begin
                        state_d = FETCH_WAIT;
                        expected_d = next_q;
                        follows_d = 1'b1;
                        due_d = burst;
                    end
                end
                FETCH_WAIT: begin
                    age_d = age_q + 1'b1;
                    if (arrived) begin
                        due_d = due_q - 3'd1;
                        expected_d = expected_q + 64'd32;
                        if (follows_q) begin
                            next_d = follower;
                            follows_d = !descriptor.last && !loops && follower == expected_q + 64'd32;
                            if (descriptor.last) begin
                                next_d = next_q;
                            end
                            if (loops) begin
                                error_d = peach2_regs_pkg::DMA_CHAIN_LOOP;
                            end
                        end
                    end
                    if (cpl_expected_o && cpl_error_i != peach2_regs_pkg::DMA_OK) begin
                        error_d = cpl_error_i;
                        due_d = 3'd0;
                    end
                    if (age_q[TIMEOUT_BITS]) begin
                        error_d = peach2_regs_pkg::DMA_READ_LOST;
                        due_d = 3'd0;
                    end
                    if (due_d == 3'd0) begin
                        generation_d = generation_q + 5'd1;
                        state_d = (error_d != peach2_regs_pkg::DMA_OK || ended_d) ? FETCH_END : FETCH_REQUEST;
                    end
                end
            endcase

            if (begin_i) begin
                state_d = FETCH_REQUEST;
                next_d = address_i;
                error_d = peach2_regs_pkg::DMA_OK;
            end
        end
    end

    always_ff @(posedge clk_i) begin
        if (rst_i) begin
            state_q <= FETCH_IDLE;
            board_q <= 1'b0;
            next_q <= 64'd0;
            expected_q <= 64'd0;
            follows_q <= 1'b0;
            due_q <= 3'd0;
            generation_q <= 5'd0;
            hit_q <= 1'b0;
            half_q <= 1'b0;
            error_q <= peach2_regs_pkg::DMA_OK;
            ended_q <= 1'b0;
            age_q <= '0;
        end else if (walking) begin
            state_q <= state_d;
            if (begin_i) begin
                board_q <= board_i;
            end
            next_q <= next_d;
            expected_q <= expected_d;
            follows_q <= follows_d;
            due_q <= due_d;
            generation_q <= generation_d;
            hit_q <= hit_d;
            half_q <= half_d;
            error_q <= error_d;
            ended_q <= ended_d;
            age_q <= age_d;
        end
    end

    always_ff @(posedge clk_i) begin
        if (cpl_data_i && hit_q && !half_q) begin
            low_q <= cpl_word_i;
        end
    end

    // --- descriptors held for the channel ---
    always_ff @(posedge clk_i) begin
        if (rst_i || begin_i) begin
            write_q <= '0;
            read_q <= '0;
        end else begin
            write_q <= write_q + {{DEPTH_BITS{1'b0}}, accept};
            read_q <= read_q + {{DEPTH_BITS{1'b0}}, valid_o && ready_i};
        end
    end

    always_ff @(posedge clk_i) begin
        if (accept) begin
            held_q[write_q[DEPTH_BITS-1:0]] <= descriptor;
        end
    end

    assign valid_o = count != '0;
    assign fence_o = held_q[read_q[DEPTH_BITS-1:0]][peach2_regs_pkg::DESCRIPTOR_FENCE_LSB];
    always_comb begin
        descriptor_o = '0;
        if (valid_o && ready_i) begin
            descriptor_o = held_q[read_q[DEPTH_BITS-1:0]];
        end
    end
    assign failed_o = count == '0 && state_q == FETCH_END && error_q != peach2_regs_pkg::DMA_OK;
    assign error_o = error_q;
    assign settled_o = state_q < FETCH_REQUEST; // FETCH_IDLE or FETCH_END

`ifndef SYNTHESIS
    descriptor_queue_never_overflows : assert property (@(posedge clk_i) disable iff (rst_i)
        !(accept && count == DEPTH[DEPTH_BITS:0]));
    a_walk_begins_only_when_settled : assert property (@(posedge clk_i) disable iff (rst_i)
        !(begin_i && !settled_o));
    more_descriptors_never_arrive_than_were_asked_for : assert property (@(posedge clk_i) disable iff (rst_i)
        !(arrived && due_q == 3'd0));
`endif
endmodule
