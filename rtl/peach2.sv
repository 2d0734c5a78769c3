// PEACH2: four link ports, the router between them, the DMAC, and the board's registers and memory.
//
//   ingress N E W S --+                      +-- egress N E W S
//   LOCAL's answers --+-- one-hot, a packet -+-- LOCAL (register file, internal memory)
//   DMAC's reads    --+   at a time          +-- DMAC (completions, from N only)
//   DMAC's writes   --+                      +-- DISCARD (always ready)
//
// Ports are flattened by link: 0 N, 1 E, 2 W, 3 S. cfg_* are the hard IP's and the board's straps; they do not change
// after reset begins. A beat takes three cycles from rx to tx when nothing stalls it.
module peach2 (
    input  logic         clk_i,
    input  logic         rst_i,
    input  logic [3:0]   rx_valid_i,
    output logic [3:0]   rx_ready_o,
    input  logic [15:0]  rx_mark_i,          // sop, eop, empty of a beat_t; port p at [4*p +: 4]
    input  logic [511:0] rx_data_i,          // port p at [128*p +: 128]
    input  logic [2:0]   rx_bar_i,           // the BAR that the packet at N hit, valid with its first beat
    output logic [3:0]   tx_valid_o,
    input  logic [3:0]   tx_ready_i,
    input  logic [3:0]   tx_room_i,          // the hard IP has room for the packets of the bubble rule
    output logic [15:0]  tx_mark_o,
    output logic [511:0] tx_data_o,
    input  logic [15:0]  cfg_requester_i,    // requester and completer ID
    input  logic [3:0]   cfg_mps_log2_i,     // maximum payload size: 7 (128 B) .. 12 (4096 B)
    input  logic [15:0]  cfg_start_cycles_i, // DMAC: from start to the first request for data
    input  logic [15:0]  cfg_fetch_cycles_i, // DMAC: to the request for a chain's first descriptor, if that is earlier
    input  logic [15:0]  cfg_finish_cycles_i, // DMAC: from the last write to the notification
    input  logic [9:0]   cfg_read_bytes_i,   // DMAC: size of its reads
    input  logic [5:0]   cfg_read_tags_i,    // DMAC: outstanding reads
    input  logic [2:0]   cfg_prefetch_i,     // DMAC: descriptors fetched ahead
    output logic         idle_o,             // no packet inside; the clock may stop while no rx_valid_i is set
    output logic         still_o             // no beat moves inside (idle, or stalled at the outputs); the clock may
                                             // stop while no beat enters or leaves and tx_ready_i stays as it is
);
    localparam int unsigned SOURCES = peach2_pkg::SOURCES;
    localparam int unsigned DESTS = peach2_pkg::DESTS;
    localparam int unsigned LINKS = 4;

    // --- straps ----------------------------------------------------------------------------------------------------

    logic [15:0]  cfg_requester_q;
    logic [3:0]   cfg_mps_log2_q;
    logic [15:0]  cfg_start_cycles_q;
    logic [15:0]  fetch_left_q; // the rest of the start-up time that a chain's first fetch does not wait for
    logic [15:0]  cfg_finish_cycles_q;
    logic [9:0]   cfg_read_bytes_q;
    logic [5:0]   cfg_read_tags_q;
    logic [2:0]   cfg_prefetch_q;

    always_ff @(posedge clk_i) begin
        if (rst_i) begin
            cfg_requester_q <= cfg_requester_i;
            cfg_mps_log2_q <= cfg_mps_log2_i;
            cfg_start_cycles_q <= cfg_start_cycles_i;
            fetch_left_q <= cfg_fetch_cycles_i < cfg_start_cycles_i ? cfg_start_cycles_i - cfg_fetch_cycles_i : 16'd0;
            cfg_finish_cycles_q <= cfg_finish_cycles_i;
            cfg_read_bytes_q <= cfg_read_bytes_i;
            cfg_read_tags_q <= cfg_read_tags_i;
            cfg_prefetch_q <= cfg_prefetch_i;
        end
    end

    // --- registers -------------------------------------------------------------------------------------------------

    peach2_regs_pkg::chip_rw_t         chip;
    peach2_regs_pkg::interrupt_rw_t    interrupt;
    peach2_regs_pkg::interrupt_ro_t    interrupt_state;
    peach2_regs_pkg::interrupt_pulse_t interrupt_pulse;
    peach2_regs_pkg::counter_ro_t      counters;
    logic [peach2_regs_pkg::ROUTE_COUNT*peach2_regs_pkg::ROUTE_RW_BITS-1:0]   routes;
    logic [peach2_regs_pkg::OFFSET_COUNT*peach2_regs_pkg::OFFSET_RW_BITS-1:0] offsets;
    logic [peach2_regs_pkg::DMAC_COUNT*peach2_regs_pkg::DMAC_RW_BITS-1:0]     dmac;
    logic [peach2_regs_pkg::DMAC_COUNT*peach2_regs_pkg::DMAC_RO_BITS-1:0]     dmac_state;
    logic [peach2_regs_pkg::DMAC_COUNT*peach2_regs_pkg::DMAC_PULSE_BITS-1:0]  dmac_pulse;
    logic         message_valid, message_ready, interrupt_idle;
    logic [3:0]   channel_interrupt;
    logic         reg_access, reg_mapped, regfile_idle;
    logic [9:0]   reg_index;
    logic [3:0]   reg_enable;
    logic [31:0]  reg_wdata, reg_rdata;
    logic [31:0]  unroutable_n, unroutable_e, unroutable_w, unroutable_s;
    logic [31:0]  unexpected_n, unexpected_e, unexpected_w, unexpected_s, unexpected_dmac_q;
    logic [31:0]  holds_n, holds_s;
    logic         unexpected_dmac;

    if (peach2_regs_pkg::OFFSET_COUNT != 4 || peach2_regs_pkg::DMAC_COUNT != 4) begin : gen_illegal
        $error("peach2: registers.def does not fit the chip");
    end

    peach2_regfile i_regfile (
        .clk_i, .rst_i,
        .access_i(reg_access), .index_i(reg_index), .enable_i(reg_enable), .wdata_i(reg_wdata),
        .rdata_o(reg_rdata), .mapped_o(reg_mapped),
        .chip_rw_o(chip), .route_rw_o(routes), .offset_rw_o(offsets),
        .interrupt_rw_o(interrupt), .interrupt_ro_i(interrupt_state), .interrupt_pulse_o(interrupt_pulse),
        .dmac_rw_o(dmac), .dmac_ro_i(dmac_state), .dmac_pulse_o(dmac_pulse),
        .counter_ro_i(counters),
        .idle_o(regfile_idle)
    );

    peach2_interrupt i_interrupt (
        .clk_i, .rst_i, .pulse_i(interrupt_pulse), .channel_i(channel_interrupt), .enable_i(interrupt.enable),
        .pending_o(interrupt_state.pending), .valid_o(message_valid), .ready_i(message_ready),
        .idle_o(interrupt_idle)
    );

    // Sums over the ports.
    assign counters.unroutable_writes = unroutable_n + unroutable_e + unroutable_w + unroutable_s;
    assign counters.unexpected_completions = unexpected_dmac_q + unexpected_e + unexpected_w + unexpected_s;

    // --- sources ---------------------------------------------------------------------------------------------------

    // For each source: whether a beat is offered, its destination, and whether it is taken.
    logic               valid_n, valid_e, valid_w, valid_s, valid_local, valid_read, valid_write;
    logic               ready_n, ready_e, ready_w, ready_s, ready_local, ready_read, ready_write;
    peach2_pkg::beat_t  beat_n, beat_e, beat_w, beat_s, beat_local, beat_read, beat_write;
    logic [DESTS-1:0]   dest_n, dest_e, dest_w, dest_s, dest_local, dest_write;
    logic [3:0]         read_unsupported;
    logic               idle_n, idle_e, idle_w, idle_s, still_n, still_e, still_w, still_s;
    logic               dmac_cpl_ready;

    peach2_ingress #(.PORT(peach2_pkg::DEST_N)) i_ingress_n (
        .clk_i, .rst_i,
        .rx_valid_i(rx_valid_i[0]), .rx_beat_i({rx_mark_i[3:0], rx_data_i[127:0]}),
        .rx_bar0_i(rx_bar_i == 3'd0), .rx_ready_o(rx_ready_o[0]),
        .window_base_i(chip.window_base.prefix), .routes_i(routes),
        .valid_o(valid_n), .beat_o(beat_n), .dest_o(dest_n), .unsupported_o(read_unsupported[0]),
        .ready_i(ready_n), .tlps_o(counters.tlps_in_n), .unroutable_o(unroutable_n),
        .unexpected_o(unexpected_n),
        .idle_o(idle_n), .still_o(still_n)
    );

    peach2_ingress #(.PORT(peach2_pkg::DEST_E)) i_ingress_e (
        .clk_i, .rst_i,
        .rx_valid_i(rx_valid_i[1]), .rx_beat_i({rx_mark_i[7:4], rx_data_i[255:128]}),
        .rx_bar0_i(1'b0), .rx_ready_o(rx_ready_o[1]),
        .window_base_i(chip.window_base.prefix), .routes_i(routes),
        .valid_o(valid_e), .beat_o(beat_e), .dest_o(dest_e), .unsupported_o(read_unsupported[1]),
        .ready_i(ready_e), .tlps_o(counters.tlps_in_e), .unroutable_o(unroutable_e),
        .unexpected_o(unexpected_e),
        .idle_o(idle_e), .still_o(still_e)
    );

    peach2_ingress #(.PORT(peach2_pkg::DEST_W)) i_ingress_w (
        .clk_i, .rst_i,
        .rx_valid_i(rx_valid_i[2]), .rx_beat_i({rx_mark_i[11:8], rx_data_i[383:256]}),
        .rx_bar0_i(1'b0), .rx_ready_o(rx_ready_o[2]),
        .window_base_i(chip.window_base.prefix), .routes_i(routes),
        .valid_o(valid_w), .beat_o(beat_w), .dest_o(dest_w), .unsupported_o(read_unsupported[2]),
        .ready_i(ready_w), .tlps_o(counters.tlps_in_w), .unroutable_o(unroutable_w),
        .unexpected_o(unexpected_w),
        .idle_o(idle_w), .still_o(still_w)
    );

    peach2_ingress #(.PORT(peach2_pkg::DEST_S)) i_ingress_s (
        .clk_i, .rst_i,
        .rx_valid_i(rx_valid_i[3]), .rx_beat_i({rx_mark_i[15:12], rx_data_i[511:384]}),
        .rx_bar0_i(1'b0), .rx_ready_o(rx_ready_o[3]),
        .window_base_i(chip.window_base.prefix), .routes_i(routes),
        .valid_o(valid_s), .beat_o(beat_s), .dest_o(dest_s), .unsupported_o(read_unsupported[3]),
        .ready_i(ready_s), .tlps_o(counters.tlps_in_s), .unroutable_o(unroutable_s),
        .unexpected_o(unexpected_s),
        .idle_o(idle_s), .still_o(still_s)
    );

    // --- requests and granted beats ----------------------------------------------------------------------------------

    // For each destination: the sources that request it, in the order of SOURCE_*, and those whose beat is taken. A
    // beat is granted only at the destination that it requests, so the destinations' answers can be merged.
    logic [SOURCES-1:0] request_n, request_e, request_w, request_s, request_local;
    logic [SOURCES-1:0] taken_n, taken_e, taken_w, taken_s, taken_local;

    always_comb begin
        request_n = '0;
        request_e = '0;
        request_w = '0;
        request_s = '0;
        request_local = '0;
        if (valid_n) begin
            request_n[peach2_pkg::DEST_N] = dest_n[peach2_pkg::DEST_N];
            request_e[peach2_pkg::DEST_N] = dest_n[peach2_pkg::DEST_E];
            request_w[peach2_pkg::DEST_N] = dest_n[peach2_pkg::DEST_W];
            request_s[peach2_pkg::DEST_N] = dest_n[peach2_pkg::DEST_S];
            request_local[peach2_pkg::DEST_N] = dest_n[peach2_pkg::DEST_LOCAL];
        end
        if (valid_e) begin
            request_n[peach2_pkg::DEST_E] = dest_e[peach2_pkg::DEST_N];
            request_e[peach2_pkg::DEST_E] = dest_e[peach2_pkg::DEST_E];
            request_w[peach2_pkg::DEST_E] = dest_e[peach2_pkg::DEST_W];
            request_s[peach2_pkg::DEST_E] = dest_e[peach2_pkg::DEST_S];
            request_local[peach2_pkg::DEST_E] = dest_e[peach2_pkg::DEST_LOCAL];
        end
        if (valid_w) begin
            request_n[peach2_pkg::DEST_W] = dest_w[peach2_pkg::DEST_N];
            request_e[peach2_pkg::DEST_W] = dest_w[peach2_pkg::DEST_E];
            request_w[peach2_pkg::DEST_W] = dest_w[peach2_pkg::DEST_W];
            request_s[peach2_pkg::DEST_W] = dest_w[peach2_pkg::DEST_S];
            request_local[peach2_pkg::DEST_W] = dest_w[peach2_pkg::DEST_LOCAL];
        end
        if (valid_s) begin
            request_n[peach2_pkg::DEST_S] = dest_s[peach2_pkg::DEST_N];
            request_e[peach2_pkg::DEST_S] = dest_s[peach2_pkg::DEST_E];
            request_w[peach2_pkg::DEST_S] = dest_s[peach2_pkg::DEST_W];
            request_s[peach2_pkg::DEST_S] = dest_s[peach2_pkg::DEST_S];
            request_local[peach2_pkg::DEST_S] = dest_s[peach2_pkg::DEST_LOCAL];
        end
        if (valid_local) begin
            request_n[peach2_pkg::SOURCE_LOCAL] = dest_local[peach2_pkg::DEST_N];
            request_e[peach2_pkg::SOURCE_LOCAL] = dest_local[peach2_pkg::DEST_E];
            request_w[peach2_pkg::SOURCE_LOCAL] = dest_local[peach2_pkg::DEST_W];
            request_s[peach2_pkg::SOURCE_LOCAL] = dest_local[peach2_pkg::DEST_S];
        end
        if (valid_read) begin
            request_n[peach2_pkg::SOURCE_READ] = 1'b1;
        end
        if (valid_write) begin
            request_n[peach2_pkg::SOURCE_WRITE] = dest_write[peach2_pkg::DEST_N];
            request_e[peach2_pkg::SOURCE_WRITE] = dest_write[peach2_pkg::DEST_E];
            request_w[peach2_pkg::SOURCE_WRITE] = dest_write[peach2_pkg::DEST_W];
            request_s[peach2_pkg::SOURCE_WRITE] = dest_write[peach2_pkg::DEST_S];
            request_local[peach2_pkg::SOURCE_WRITE] = dest_write[peach2_pkg::DEST_LOCAL];
        end
    end

    always_comb begin
        ready_n = taken_n[peach2_pkg::DEST_N] || taken_e[peach2_pkg::DEST_N] || taken_w[peach2_pkg::DEST_N] ||
                  taken_s[peach2_pkg::DEST_N] || taken_local[peach2_pkg::DEST_N] ||
                  (dest_n[peach2_pkg::DEST_DMAC] && dmac_cpl_ready) || dest_n[peach2_pkg::DEST_DISCARD];
        ready_e = taken_n[peach2_pkg::DEST_E] || taken_e[peach2_pkg::DEST_E] || taken_w[peach2_pkg::DEST_E] ||
                  taken_s[peach2_pkg::DEST_E] || taken_local[peach2_pkg::DEST_E] ||
                  dest_e[peach2_pkg::DEST_DISCARD];
        ready_w = taken_n[peach2_pkg::DEST_W] || taken_e[peach2_pkg::DEST_W] || taken_w[peach2_pkg::DEST_W] ||
                  taken_s[peach2_pkg::DEST_W] || taken_local[peach2_pkg::DEST_W] ||
                  dest_w[peach2_pkg::DEST_DISCARD];
        ready_s = taken_n[peach2_pkg::DEST_S] || taken_e[peach2_pkg::DEST_S] || taken_w[peach2_pkg::DEST_S] ||
                  taken_s[peach2_pkg::DEST_S] || taken_local[peach2_pkg::DEST_S] ||
                  dest_s[peach2_pkg::DEST_DISCARD];
        ready_local = taken_n[peach2_pkg::SOURCE_LOCAL] || taken_e[peach2_pkg::SOURCE_LOCAL] ||
            taken_w[peach2_pkg::SOURCE_LOCAL] || taken_s[peach2_pkg::SOURCE_LOCAL];
        ready_read = taken_n[peach2_pkg::SOURCE_READ];
        ready_write = taken_n[peach2_pkg::SOURCE_WRITE] || taken_e[peach2_pkg::SOURCE_WRITE] ||
            taken_w[peach2_pkg::SOURCE_WRITE] ||
                      taken_s[peach2_pkg::SOURCE_WRITE] || taken_local[peach2_pkg::SOURCE_WRITE] ||
                      dest_write[peach2_pkg::DEST_DISCARD];
    end

    // --- the DMAC and the internal memory ----------------------------------------------------------------------------

    logic         dmac_idle;
    logic         mem_read, mem_write, dmac_mem_valid, dmac_mem_ready, dmac_mem_rvalid;
    logic [9:0]   dmac_mem_index;
    logic [10:0]  mem_index;
    logic [15:0]  mem_enable;
    logic [127:0] mem_wdata, mem_rdata;
    logic [255:0] dmac_mem_rdata;

    peach2_dmac i_dmac (
        .clk_i, .rst_i, .cfg_requester_i(cfg_requester_q), .cfg_mps_log2_i(cfg_mps_log2_q),
        .cfg_start_cycles_i(cfg_start_cycles_q), .cfg_fetch_left_i(fetch_left_q),
        .cfg_finish_cycles_i(cfg_finish_cycles_q),
        .cfg_read_bytes_i(cfg_read_bytes_q), .cfg_read_tags_i(cfg_read_tags_q), .cfg_prefetch_i(cfg_prefetch_q),
        .rw_i(dmac), .pulse_i(dmac_pulse), .ro_read_i(reg_access), .ro_o(dmac_state),
        .window_base_i(chip.window_base.prefix), .routes_i(routes),
        .imem_valid_o(dmac_mem_valid), .imem_index_o(dmac_mem_index), .imem_ready_i(dmac_mem_ready),
        .imem_rvalid_i(dmac_mem_rvalid), .imem_rdata_i(dmac_mem_rdata),
        .cpl_valid_i(valid_n && dest_n[peach2_pkg::DEST_DMAC]), .cpl_beat_i(beat_n), .cpl_ready_o(dmac_cpl_ready),
        .rd_valid_o(valid_read), .rd_beat_o(beat_read),
        .rd_ready_i(ready_read),
        .wr_valid_o(valid_write), .wr_beat_o(beat_write), .wr_dest_o(dest_write),
        .wr_ready_i(ready_write),
        .message_valid_i(message_valid), .message_address_i(interrupt.address), .message_value_i(interrupt.value),
        .message_ready_o(message_ready), .interrupt_o(channel_interrupt),
        .unexpected_o(unexpected_dmac), .idle_o(dmac_idle)
    );

    peach2_imem i_imem (
        .clk_i, .rst_i,
        .a_read_i(mem_read), .a_write_i(mem_write), .a_index_i(mem_index), .a_enable_i(mem_enable),
        .a_wdata_i(mem_wdata), .a_rdata_o(mem_rdata),
        .b_valid_i(dmac_mem_valid), .b_index_i(dmac_mem_index), .b_ready_o(dmac_mem_ready),
        .b_rvalid_o(dmac_mem_rvalid), .b_rdata_o(dmac_mem_rdata)
    );

    // --- LOCAL -------------------------------------------------------------------------------------------------------

    logic               local_idle, local_still;
    peach2_local i_local (
        .clk_i, .rst_i, .cfg_requester_i(cfg_requester_q), .cfg_mps_log2_i(cfg_mps_log2_q),
        .request_i(request_local), .beat_n_i(beat_n), .beat_e_i(beat_e), .beat_w_i(beat_w), .beat_s_i(beat_s),
        .beat_write_i(beat_write), .unsupported_i(read_unsupported), .ready_o(taken_local),
        .valid_o(valid_local), .beat_o(beat_local), .dest_o(dest_local),
        .ready_i(ready_local),
        .reg_access_o(reg_access), .reg_index_o(reg_index), .reg_enable_o(reg_enable), .reg_wdata_o(reg_wdata),
        .reg_rdata_i(reg_rdata), .reg_mapped_i(reg_mapped),
        .mem_read_o(mem_read), .mem_write_o(mem_write), .mem_index_o(mem_index), .mem_enable_o(mem_enable),
        .mem_wdata_o(mem_wdata), .mem_rdata_i(mem_rdata),
        .unsupported_o(counters.unsupported_reads), .refused_o(counters.refused_writes), .idle_o(local_idle), .still_o(local_still)
    );

    // --- outputs -----------------------------------------------------------------------------------------------------

    peach2_pkg::beat_t  tx_n, tx_e, tx_w, tx_s;
    logic               out_idle_n, out_idle_e, out_idle_w, out_idle_s;
    logic               out_still_n, out_still_e, out_still_w, out_still_s;

    peach2_egress #(.NORTH(1'b1)) i_egress_n (
        .clk_i, .rst_i,
        .request_i(request_n),
        .beat_n_i(beat_n), .beat_e_i(beat_e), .beat_w_i(beat_w), .beat_s_i(beat_s), .beat_local_i(beat_local),
        .beat_read_i(beat_read), .beat_write_i(beat_write), .ready_o(taken_n),
        .window_base_i(chip.window_base.prefix), .offsets_i(offsets),
        .tx_valid_o(tx_valid_o[0]), .tx_beat_o(tx_n), .tx_ready_i(tx_ready_i[0]), .tx_room_i(tx_room_i[0]),
        .tlps_o(counters.tlps_out_n),
        .holds_o(holds_n), .idle_o(out_idle_n), .still_o(out_still_n)
    );

    // A packet from W to E stays on its ring, and so does one from E to W.
    peach2_egress #(.ON_RING(7'd1 << peach2_pkg::DEST_W)) i_egress_e (
        .clk_i, .rst_i,
        .request_i(request_e),
        .beat_n_i(beat_n), .beat_e_i(beat_e), .beat_w_i(beat_w), .beat_s_i(beat_s), .beat_local_i(beat_local),
        .beat_read_i(beat_read), .beat_write_i(beat_write), .ready_o(taken_e),
        .window_base_i(chip.window_base.prefix), .offsets_i(offsets),
        .tx_valid_o(tx_valid_o[1]), .tx_beat_o(tx_e), .tx_ready_i(tx_ready_i[1]), .tx_room_i(tx_room_i[1]),
        .tlps_o(counters.tlps_out_e),
        .holds_o(counters.ring_holds_e), .idle_o(out_idle_e), .still_o(out_still_e)
    );

    peach2_egress #(.ON_RING(7'd1 << peach2_pkg::DEST_E)) i_egress_w (
        .clk_i, .rst_i,
        .request_i(request_w),
        .beat_n_i(beat_n), .beat_e_i(beat_e), .beat_w_i(beat_w), .beat_s_i(beat_s), .beat_local_i(beat_local),
        .beat_read_i(beat_read), .beat_write_i(beat_write), .ready_o(taken_w),
        .window_base_i(chip.window_base.prefix), .offsets_i(offsets),
        .tx_valid_o(tx_valid_o[2]), .tx_beat_o(tx_w), .tx_ready_i(tx_ready_i[2]), .tx_room_i(tx_room_i[2]),
        .tlps_o(counters.tlps_out_w),
        .holds_o(counters.ring_holds_w), .idle_o(out_idle_w), .still_o(out_still_w)
    );

    peach2_egress i_egress_s (
        .clk_i, .rst_i,
        .request_i(request_s),
        .beat_n_i(beat_n), .beat_e_i(beat_e), .beat_w_i(beat_w), .beat_s_i(beat_s), .beat_local_i(beat_local),
        .beat_read_i(beat_read), .beat_write_i(beat_write), .ready_o(taken_s),
        .window_base_i(chip.window_base.prefix), .offsets_i(offsets),
        .tx_valid_o(tx_valid_o[3]), .tx_beat_o(tx_s), .tx_ready_i(tx_ready_i[3]), .tx_room_i(tx_room_i[3]),
        .tlps_o(counters.tlps_out_s),
        .holds_o(holds_s), .idle_o(out_idle_s), .still_o(out_still_s)
    );

    assign tx_mark_o = {tx_s.sop, tx_s.eop, tx_s.empty, tx_w.sop, tx_w.eop, tx_w.empty,
                        tx_e.sop, tx_e.eop, tx_e.empty, tx_n.sop, tx_n.eop, tx_n.empty};
    assign tx_data_o = {tx_s.data, tx_w.data, tx_e.data, tx_n.data};

    always_comb begin
        idle_o = 1'b0;
        still_o = 1'b0;
        if (dmac_idle) begin
            idle_o = idle_n && idle_e && idle_w && idle_s && out_idle_n && out_idle_e && out_idle_w && out_idle_s &&
                     local_idle && regfile_idle && interrupt_idle;
            still_o = still_n && still_e && still_w && still_s && out_still_n && out_still_e && out_still_w &&
                      out_still_s && local_still && regfile_idle && interrupt_idle;
        end
    end

    // Only the DMAC detects unexpected completions at N.
    always_ff @(posedge clk_i) begin
        if (rst_i) begin
            unexpected_dmac_q <= '0;
        end else if (unexpected_dmac) begin
            unexpected_dmac_q <= unexpected_dmac_q + 32'd1;
        end
    end

    logic unused_ok;
    assign unused_ok = &{1'b0, chip, unexpected_n, holds_n, holds_s, dest_local[DESTS-1:4]};

`ifndef SYNTHESIS
    for (genvar p = 0; p < LINKS; p++) begin : gen_asserts
        tx_beat_is_stable_until_taken: assert property (@(posedge clk_i) disable iff (rst_i)
            tx_valid_o[p] && !tx_ready_i[p] |=> tx_valid_o[p] && $stable(tx_data_o[128*p +: 128]));
    end
    one_destination_takes_the_beat_from_n: assert property (@(posedge clk_i) disable iff (rst_i)
        valid_n |-> $onehot0({taken_n[0], taken_e[0], taken_w[0], taken_s[0], taken_local[0]}));
    one_destination_takes_the_beat_of_the_dmac: assert property (@(posedge clk_i) disable iff (rst_i)
        valid_write |-> $onehot0({taken_n[peach2_pkg::SOURCE_WRITE], taken_e[peach2_pkg::SOURCE_WRITE],
                                  taken_w[peach2_pkg::SOURCE_WRITE], taken_s[peach2_pkg::SOURCE_WRITE],
                                  taken_local[peach2_pkg::SOURCE_WRITE]}));
    dmac_writes_go_to_one_destination: assert property (@(posedge clk_i) disable iff (rst_i)
        valid_write |-> $onehot(dest_write));
`endif
endmodule
