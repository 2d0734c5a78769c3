// PEACH2: four link ports, the router between them, the DMAC, and the board's registers and memory.
//
//   ingress N E W S --+                      +-- egress N E W S
//   LOCAL's answers --+-- one-hot, a packet -+-- LOCAL (register file, internal memory)
//   DMAC's reads    --+   at a time          +-- DMAC (completions, from N only)
//   DMAC's writes   --+                      +-- DISCARD (always ready)
//
// Ports are flattened by link: 0 N, 1 E, 2 W, 3 S. cfg_* are the hard IP's and the board's straps; they do not change
// after reset begins. A beat takes three cycles from rx to tx when nothing is in its way.
module peach2 (
    input  logic         clk_i,
    input  logic         rst_i,
    input  logic [3:0]   rx_valid_i,
    output logic [3:0]   rx_ready_o,
    input  logic [3:0]   rx_sop_i,
    input  logic [3:0]   rx_eop_i,
    input  logic [7:0]   rx_empty_i,         // port p at [2*p +: 2]
    input  logic [511:0] rx_data_i,          // port p at [128*p +: 128]
    input  logic [2:0]   rx_bar_i,           // the BAR that the packet at N hit, with its first beat
    output logic [3:0]   tx_valid_o,
    input  logic [3:0]   tx_ready_i,
    output logic [3:0]   tx_sop_o,
    output logic [3:0]   tx_eop_o,
    output logic [7:0]   tx_empty_o,
    output logic [511:0] tx_data_o,
    input  logic [15:0]  cfg_requester_i,    // requester and completer ID
    input  logic [3:0]   cfg_mps_log2_i,     // maximum payload size: 7 (128 B) .. 12 (4096 B)
    input  logic [15:0]  cfg_start_cycles_i, // DMAC: from start to the first request
    input  logic [15:0]  cfg_finish_cycles_i, // DMAC: from the last write to the notification
    input  logic [9:0]   cfg_read_bytes_i,   // DMAC: size of its reads
    input  logic [5:0]   cfg_read_tags_i,    // DMAC: outstanding reads
    input  logic [2:0]   cfg_prefetch_i,     // DMAC: descriptors fetched ahead
    output logic         idle_o,             // nothing inside; the clock may stop while no rx_valid_i is set
    output logic         still_o             // nothing changes at the next edge: the clock may stop while rx_valid_i
                                             // and tx_ready_i stay as they are (idle, or stalled at the outputs)
);
    localparam int unsigned SOURCES = peach2_pkg::SOURCES;
    localparam int unsigned DESTS = peach2_pkg::DESTS;
    localparam int unsigned LINKS = 4;

    // --- straps ----------------------------------------------------------------------------------------------------

    logic [15:0]  cfg_requester_q;
    logic [3:0]   cfg_mps_log2_q;
    logic [15:0]  cfg_start_cycles_q;
    logic [15:0]  cfg_finish_cycles_q;
    logic [9:0]   cfg_read_bytes_q;
    logic [5:0]   cfg_read_tags_q;
    logic [2:0]   cfg_prefetch_q;

    always_ff @(posedge clk_i) begin
        cfg_requester_q <= cfg_requester_i;
        cfg_mps_log2_q <= cfg_mps_log2_i;
        cfg_start_cycles_q <= cfg_start_cycles_i;
        cfg_finish_cycles_q <= cfg_finish_cycles_i;
        cfg_read_bytes_q <= cfg_read_bytes_i;
        cfg_read_tags_q <= cfg_read_tags_i;
        cfg_prefetch_q <= cfg_prefetch_i;
    end

    // --- registers -------------------------------------------------------------------------------------------------

    logic [24:0]  window_base;
    logic [134:0] mask, lower, upper;
    logic [4:0]   route_enable;
    logic [255:0] subtract;
    logic [255:0] source, destination, descriptor, notify_local, notify_remote;
    logic [127:0] length, control, notify_value, status, completed;
    logic [3:0]   start;
    logic         reg_access, reg_mapped, regfile_idle;
    logic [9:0]   reg_index;
    logic [3:0]   reg_enable;
    logic [31:0]  reg_wdata, reg_rdata;
    logic [3:0]   tlp_in, tlp_out, unroutable, unexpected_links;
    logic         unsupported, refused, unexpected_dmac;

    peach2_regfile i_regfile (
        .clk_i, .rst_i,
        .access_i(reg_access), .index_i(reg_index), .enable_i(reg_enable), .wdata_i(reg_wdata),
        .rdata_o(reg_rdata), .mapped_o(reg_mapped),
        .window_base_o(window_base), .mask_o(mask), .lower_o(lower), .upper_o(upper),
        .route_enable_o(route_enable), .subtract_o(subtract),
        .source_o(source), .destination_o(destination), .descriptor_o(descriptor),
        .notify_local_o(notify_local), .notify_remote_o(notify_remote), .length_o(length), .control_o(control),
        .notify_value_o(notify_value), .start_o(start), .status_i(status), .completed_i(completed),
        .tlp_in_i(tlp_in), .tlp_out_i(tlp_out), .unroutable_i(unroutable), .unsupported_i(unsupported),
        // At N only the DMAC finds a completion unexpected.
        .unexpected_i({unexpected_links[3:1], unexpected_dmac}), .refused_i(refused), .idle_o(regfile_idle)
    );

    // --- sources ---------------------------------------------------------------------------------------------------

    // Per source: a beat is offered, where to, and whether it is taken.
    logic [SOURCES-1:0] valid, ready;
    peach2_pkg::beat_t  beat_n, beat_e, beat_w, beat_s, beat_local, beat_read, beat_write;
    logic [DESTS-1:0]   dest_n, dest_e, dest_w, dest_s, dest_local, dest_write;
    logic [3:0]         read_unsupported, ingress_idle, ingress_still;

    peach2_ingress #(.PORT(peach2_pkg::DEST_N)) i_ingress_n (
        .clk_i, .rst_i,
        .rx_valid_i(rx_valid_i[0]), .rx_beat_i({rx_sop_i[0], rx_eop_i[0], rx_empty_i[1:0], rx_data_i[127:0]}),
        .rx_bar0_i(rx_bar_i == 3'd0), .rx_ready_o(rx_ready_o[0]),
        .window_base_i(window_base), .mask_i(mask), .lower_i(lower), .upper_i(upper), .enable_i(route_enable),
        .valid_o(valid[0]), .beat_o(beat_n), .dest_o(dest_n), .unsupported_o(read_unsupported[0]),
        .ready_i(ready[0]), .tlp_o(tlp_in[0]), .unroutable_o(unroutable[0]), .unexpected_o(unexpected_links[0]),
        .idle_o(ingress_idle[0]), .still_o(ingress_still[0])
    );

    peach2_ingress #(.PORT(peach2_pkg::DEST_E)) i_ingress_e (
        .clk_i, .rst_i,
        .rx_valid_i(rx_valid_i[1]), .rx_beat_i({rx_sop_i[1], rx_eop_i[1], rx_empty_i[3:2], rx_data_i[255:128]}),
        .rx_bar0_i(1'b0), .rx_ready_o(rx_ready_o[1]),
        .window_base_i(window_base), .mask_i(mask), .lower_i(lower), .upper_i(upper), .enable_i(route_enable),
        .valid_o(valid[1]), .beat_o(beat_e), .dest_o(dest_e), .unsupported_o(read_unsupported[1]),
        .ready_i(ready[1]), .tlp_o(tlp_in[1]), .unroutable_o(unroutable[1]), .unexpected_o(unexpected_links[1]),
        .idle_o(ingress_idle[1]), .still_o(ingress_still[1])
    );

    peach2_ingress #(.PORT(peach2_pkg::DEST_W)) i_ingress_w (
        .clk_i, .rst_i,
        .rx_valid_i(rx_valid_i[2]), .rx_beat_i({rx_sop_i[2], rx_eop_i[2], rx_empty_i[5:4], rx_data_i[383:256]}),
        .rx_bar0_i(1'b0), .rx_ready_o(rx_ready_o[2]),
        .window_base_i(window_base), .mask_i(mask), .lower_i(lower), .upper_i(upper), .enable_i(route_enable),
        .valid_o(valid[2]), .beat_o(beat_w), .dest_o(dest_w), .unsupported_o(read_unsupported[2]),
        .ready_i(ready[2]), .tlp_o(tlp_in[2]), .unroutable_o(unroutable[2]), .unexpected_o(unexpected_links[2]),
        .idle_o(ingress_idle[2]), .still_o(ingress_still[2])
    );

    peach2_ingress #(.PORT(peach2_pkg::DEST_S)) i_ingress_s (
        .clk_i, .rst_i,
        .rx_valid_i(rx_valid_i[3]), .rx_beat_i({rx_sop_i[3], rx_eop_i[3], rx_empty_i[7:6], rx_data_i[511:384]}),
        .rx_bar0_i(1'b0), .rx_ready_o(rx_ready_o[3]),
        .window_base_i(window_base), .mask_i(mask), .lower_i(lower), .upper_i(upper), .enable_i(route_enable),
        .valid_o(valid[3]), .beat_o(beat_s), .dest_o(dest_s), .unsupported_o(read_unsupported[3]),
        .ready_i(ready[3]), .tlp_o(tlp_in[3]), .unroutable_o(unroutable[3]), .unexpected_o(unexpected_links[3]),
        .idle_o(ingress_idle[3]), .still_o(ingress_still[3])
    );

    // --- the DMAC and the internal memory ----------------------------------------------------------------------------

    logic         dmac_idle, dmac_cpl_ready;
    logic         mem_read, mem_write, dmac_mem_valid, dmac_mem_ready, dmac_mem_rvalid;
    logic [9:0]   dmac_mem_index;
    logic [10:0]  mem_index;
    logic [15:0]  mem_enable;
    logic [127:0] mem_wdata, mem_rdata;
    logic [255:0] dmac_mem_rdata;

    peach2_dmac i_dmac (
        .clk_i, .rst_i, .cfg_requester_i(cfg_requester_q), .cfg_mps_log2_i(cfg_mps_log2_q),
        .cfg_start_cycles_i(cfg_start_cycles_q), .cfg_finish_cycles_i(cfg_finish_cycles_q),
        .cfg_read_bytes_i(cfg_read_bytes_q), .cfg_read_tags_i(cfg_read_tags_q), .cfg_prefetch_i(cfg_prefetch_q),
        .source_i(source), .destination_i(destination), .descriptor_i(descriptor), .notify_local_i(notify_local),
        .notify_remote_i(notify_remote), .length_i(length), .control_i(control), .notify_value_i(notify_value),
        .start_i(start), .status_o(status), .completed_o(completed),
        .window_base_i(window_base), .mask_i(mask), .lower_i(lower), .upper_i(upper), .enable_i(route_enable),
        .imem_valid_o(dmac_mem_valid), .imem_index_o(dmac_mem_index), .imem_ready_i(dmac_mem_ready),
        .imem_rvalid_i(dmac_mem_rvalid), .imem_rdata_i(dmac_mem_rdata),
        .cpl_valid_i(valid[0] && dest_n[peach2_pkg::DEST_DMAC]), .cpl_beat_i(beat_n), .cpl_ready_o(dmac_cpl_ready),
        .rd_valid_o(valid[peach2_pkg::SOURCE_READ]), .rd_beat_o(beat_read),
        .rd_ready_i(ready[peach2_pkg::SOURCE_READ]),
        .wr_valid_o(valid[peach2_pkg::SOURCE_WRITE]), .wr_beat_o(beat_write), .wr_dest_o(dest_write),
        .wr_ready_i(ready[peach2_pkg::SOURCE_WRITE]),
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
    logic [SOURCES-1:0] local_request, local_ready;

    assign local_request = valid & {dest_write[peach2_pkg::DEST_LOCAL], 2'b00, dest_s[peach2_pkg::DEST_LOCAL],
                                    dest_w[peach2_pkg::DEST_LOCAL], dest_e[peach2_pkg::DEST_LOCAL],
                                    dest_n[peach2_pkg::DEST_LOCAL]};

    peach2_local i_local (
        .clk_i, .rst_i, .cfg_requester_i(cfg_requester_q), .cfg_mps_log2_i(cfg_mps_log2_q),
        .request_i(local_request), .beat_n_i(beat_n), .beat_e_i(beat_e), .beat_w_i(beat_w), .beat_s_i(beat_s),
        .beat_write_i(beat_write), .unsupported_i(read_unsupported), .ready_o(local_ready),
        .valid_o(valid[peach2_pkg::SOURCE_LOCAL]), .beat_o(beat_local), .dest_o(dest_local),
        .ready_i(ready[peach2_pkg::SOURCE_LOCAL]),
        .reg_access_o(reg_access), .reg_index_o(reg_index), .reg_enable_o(reg_enable), .reg_wdata_o(reg_wdata),
        .reg_rdata_i(reg_rdata), .reg_mapped_i(reg_mapped),
        .mem_read_o(mem_read), .mem_write_o(mem_write), .mem_index_o(mem_index), .mem_enable_o(mem_enable),
        .mem_wdata_o(mem_wdata), .mem_rdata_i(mem_rdata),
        .unsupported_o(unsupported), .refused_o(refused), .idle_o(local_idle), .still_o(local_still)
    );

    // --- outputs -----------------------------------------------------------------------------------------------------

    logic [SOURCES-1:0] ready_n, ready_e, ready_w, ready_s, ready_dmac, ready_discard;
    peach2_pkg::beat_t  tx_n, tx_e, tx_w, tx_s;
    logic [3:0]         egress_idle, egress_still;

    peach2_egress #(.NORTH(1'b1)) i_egress_n (
        .clk_i, .rst_i,
        .request_i(valid & {dest_write[0], 1'b1, dest_local[0], dest_s[0], dest_w[0], dest_e[0], dest_n[0]}),
        .beat_n_i(beat_n), .beat_e_i(beat_e), .beat_w_i(beat_w), .beat_s_i(beat_s), .beat_local_i(beat_local),
        .beat_read_i(beat_read), .beat_write_i(beat_write), .ready_o(ready_n),
        .window_base_i(window_base), .subtract_i(subtract),
        .tx_valid_o(tx_valid_o[0]), .tx_beat_o(tx_n), .tx_ready_i(tx_ready_i[0]), .tlp_o(tlp_out[0]),
        .idle_o(egress_idle[0]), .still_o(egress_still[0])
    );

    peach2_egress i_egress_e (
        .clk_i, .rst_i,
        .request_i(valid & {dest_write[1], 1'b0, dest_local[1], dest_s[1], dest_w[1], dest_e[1], dest_n[1]}),
        .beat_n_i(beat_n), .beat_e_i(beat_e), .beat_w_i(beat_w), .beat_s_i(beat_s), .beat_local_i(beat_local),
        .beat_read_i(beat_read), .beat_write_i(beat_write), .ready_o(ready_e),
        .window_base_i(window_base), .subtract_i(subtract),
        .tx_valid_o(tx_valid_o[1]), .tx_beat_o(tx_e), .tx_ready_i(tx_ready_i[1]), .tlp_o(tlp_out[1]),
        .idle_o(egress_idle[1]), .still_o(egress_still[1])
    );

    peach2_egress i_egress_w (
        .clk_i, .rst_i,
        .request_i(valid & {dest_write[2], 1'b0, dest_local[2], dest_s[2], dest_w[2], dest_e[2], dest_n[2]}),
        .beat_n_i(beat_n), .beat_e_i(beat_e), .beat_w_i(beat_w), .beat_s_i(beat_s), .beat_local_i(beat_local),
        .beat_read_i(beat_read), .beat_write_i(beat_write), .ready_o(ready_w),
        .window_base_i(window_base), .subtract_i(subtract),
        .tx_valid_o(tx_valid_o[2]), .tx_beat_o(tx_w), .tx_ready_i(tx_ready_i[2]), .tlp_o(tlp_out[2]),
        .idle_o(egress_idle[2]), .still_o(egress_still[2])
    );

    peach2_egress i_egress_s (
        .clk_i, .rst_i,
        .request_i(valid & {dest_write[3], 1'b0, dest_local[3], dest_s[3], dest_w[3], dest_e[3], dest_n[3]}),
        .beat_n_i(beat_n), .beat_e_i(beat_e), .beat_w_i(beat_w), .beat_s_i(beat_s), .beat_local_i(beat_local),
        .beat_read_i(beat_read), .beat_write_i(beat_write), .ready_o(ready_s),
        .window_base_i(window_base), .subtract_i(subtract),
        .tx_valid_o(tx_valid_o[3]), .tx_beat_o(tx_s), .tx_ready_i(tx_ready_i[3]), .tlp_o(tlp_out[3]),
        .idle_o(egress_idle[3]), .still_o(egress_still[3])
    );

    assign ready_dmac = {6'd0, dest_n[peach2_pkg::DEST_DMAC] && dmac_cpl_ready};
    assign ready_discard = {dest_write[peach2_pkg::DEST_DISCARD], 2'b00, dest_s[peach2_pkg::DEST_DISCARD],
                            dest_w[peach2_pkg::DEST_DISCARD], dest_e[peach2_pkg::DEST_DISCARD],
                            dest_n[peach2_pkg::DEST_DISCARD]};
    // A grant goes only to a source that asks, so the destinations' answers can be merged: none is meant for another.
    assign ready = ready_n | ready_e | ready_w | ready_s | local_ready | ready_dmac | ready_discard;

    assign tx_sop_o = {tx_s.sop, tx_w.sop, tx_e.sop, tx_n.sop};
    assign tx_eop_o = {tx_s.eop, tx_w.eop, tx_e.eop, tx_n.eop};
    assign tx_empty_o = {tx_s.empty, tx_w.empty, tx_e.empty, tx_n.empty};
    assign tx_data_o = {tx_s.data, tx_w.data, tx_e.data, tx_n.data};

    logic unused_ok;
    assign unused_ok = &{1'b0, unexpected_links[0], dest_local[DESTS-1:4]};

    assign idle_o = ingress_idle == '1 && egress_idle == '1 && local_idle && regfile_idle && dmac_idle;
    assign still_o = ingress_still == '1 && egress_still == '1 && local_still && regfile_idle && dmac_idle;

`ifndef SYNTHESIS
    for (genvar p = 0; p < LINKS; p++) begin : gen_asserts
        tx_beat_is_stable_until_taken: assert property (@(posedge clk_i) disable iff (rst_i)
            tx_valid_o[p] && !tx_ready_i[p] |=> tx_valid_o[p] && $stable(tx_data_o[128*p +: 128]));
    end
    for (genvar s = 0; s < SOURCES; s++) begin : gen_source_asserts
        beat_is_taken_by_one_destination: assert property (@(posedge clk_i) disable iff (rst_i)
            $onehot0({ready_n[s], ready_e[s], ready_w[s], ready_s[s], local_ready[s], ready_dmac[s],
                      ready_discard[s]} & {7{valid[s]}}));
    end
    dmac_writes_go_to_one_place: assert property (@(posedge clk_i) disable iff (rst_i)
        valid[peach2_pkg::SOURCE_WRITE] |-> $onehot(dest_write));
`endif
endmodule
