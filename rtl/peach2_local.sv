// Target of the accesses to the register file and the internal memory, one request at a time and in order.
//
// Offsets are the low 17 bits of the address. Writes reach the internal memory from every port, and the register file
// only from N, except INTERRUPT.RAISE. Writes that are not allowed or that hit nothing are discarded and counted, once
// for each packet. Reads are answered with completions that end at multiples of the maximum payload size. A read of
// more than 16 DWs of registers, one that begins where there is no register, and one that its port marked, is answered
// Unsupported Request and counted.
module peach2_local (
    input  logic                         clk_i,
    input  logic                         rst_i,
    input  logic [15:0]                  cfg_requester_i, // completer ID
    input  logic [3:0]                   cfg_mps_log2_i,  // 7 (128 B) .. 12 (4096 B)
    input  logic [peach2_pkg::SOURCES-1:0] request_i,     // source k has a beat for this target
    input  peach2_pkg::beat_t            beat_n_i,
    input  peach2_pkg::beat_t            beat_e_i,
    input  peach2_pkg::beat_t            beat_w_i,
    input  peach2_pkg::beat_t            beat_s_i,
    input  peach2_pkg::beat_t            beat_write_i,
    input  logic [3:0]                   unsupported_i,   // the read of link port p must not be served
    output logic [peach2_pkg::SOURCES-1:0] ready_o,
    output logic                         valid_o,         // completions
    output peach2_pkg::beat_t            beat_o,
    output logic [peach2_pkg::DESTS-1:0] dest_o,
    input  logic                         ready_i,
    output logic                         reg_access_o,
    output logic [9:0]                   reg_index_o,
    output logic [3:0]                   reg_enable_o,
    output logic [31:0]                  reg_wdata_o,
    input  logic [31:0]                  reg_rdata_i,
    input  logic                         reg_mapped_i,
    output logic                         mem_read_o,
    output logic                         mem_write_o,
    output logic [10:0]                  mem_index_o,
    output logic [15:0]                  mem_enable_o,
    output logic [127:0]                 mem_wdata_o,
    input  logic [127:0]                 mem_rdata_i,
    output logic [31:0]                  unsupported_o,   // counters: reads answered Unsupported Request
    output logic [31:0]                  refused_o,       // writes discarded, in part or whole
    output logic                         idle_o,
    output logic                         still_o          // nothing changes at the next edge while the inputs stay
);
    localparam int unsigned OFFSET_BITS = 17;
    localparam int unsigned REGISTER_BITS = 12; // 4 KB of registers
    localparam int unsigned MEMORY_BITS = $clog2(peach2_regs_pkg::MEMORY_DESCRIPTORS) + 5;
    localparam int unsigned REGISTER_READ_MAX = 16;

    typedef enum logic [3:0] {
        STATE_IDLE,
        STATE_WRITE_MEMORY,    // a beat a cycle
        STATE_WRITE_REGISTER,  // a DW a cycle
        STATE_WRITE_END,       // the register file has reported whether the last DW hit a register
        STATE_WRITE_DISCARD,
        STATE_READ_REGISTER,   // requests a DW
        STATE_COLLECT,         // and puts the DW on its lane
        STATE_COMPLETE_HEADER,
        STATE_COMPLETE_DATA
    } state_e;

    typedef enum logic [1:0] {REGION_REGISTER, REGION_MEMORY, REGION_NOTHING} region_e;

    if (peach2_regs_pkg::MEMORY_BASE != 'h10000 || peach2_regs_pkg::COUNTER_BASE >= (1 << REGISTER_BITS))
    begin : gen_illegal
        $error("peach2_local: registers.def does not fit the decoder");
    end

    // --- packet selection ------------------------------------------------------------------------------------------

    logic [peach2_pkg::SOURCES-1:0] grant;
    logic                           in_valid, in_ready, taken;
    peach2_pkg::beat_t              in;
    logic                           in_unsupported;

    peach2_arbiter #(.COUNT(peach2_pkg::SOURCES)) i_arbiter (
        .clk_i, .rst_i, .request_i, .taken_i(taken), .last_i(in.eop), .grant_o(grant)
    );

    always_comb begin
        in = '0;
        if (grant != '0) begin
            case (1'b1)
                grant[peach2_pkg::DEST_N]: in = beat_n_i;
                grant[peach2_pkg::DEST_E]: in = beat_e_i;
                grant[peach2_pkg::DEST_W]: in = beat_w_i;
                grant[peach2_pkg::DEST_S]: in = beat_s_i;
                default: in = beat_write_i;
            endcase
        end
    end

    assign in_valid = grant != '0;
    assign in_unsupported = (unsupported_i & grant[3:0]) != '0;
    assign taken = in_valid && in_ready;
    assign ready_o = in_ready ? grant : '0;

    // --- the request -----------------------------------------------------------------------------------------------

    peach2_pkg::request_t   header;
    logic                   header_is_write;
    logic [OFFSET_BITS-1:2] header_offset;
    logic [10:0]            header_dwords;
    region_e                header_region;
    logic                   from_north;
    logic                   raises; // writes only INTERRUPT.RAISE

    assign header = in.data;
    assign header_is_write = header.dw0.fmt[1];
    assign header_offset = header.address_lo[OFFSET_BITS-3:0];
    assign from_north = grant[peach2_pkg::DEST_N];

    always_comb begin
        header_dwords = '0;
        raises = 1'b0;
        header_region = REGION_NOTHING;
        if (in_valid) begin
            header_dwords = {header.dw0.length == '0, header.dw0.length};
            raises = {15'd0, header_offset, 2'b00} ==
                     peach2_regs_pkg::INTERRUPT_BASE + peach2_regs_pkg::INTERRUPT_RAISE_OFFSET &&
                     header_dwords == 11'd1;
            if (header_offset[OFFSET_BITS-1:REGISTER_BITS] == '0) begin
                header_region = REGION_REGISTER;
            end
            if (header_offset[OFFSET_BITS-1:MEMORY_BITS] ==
                peach2_regs_pkg::MEMORY_BASE[OFFSET_BITS-1:MEMORY_BITS]) begin
                header_region = REGION_MEMORY;
            end
        end
    end

    state_e                 state_d, state_q;
    logic                   active;         // otherwise nothing changes in this cycle
    peach2_pkg::request_t   request_q;      // the header
    logic [3:0]             port_q;         // one-hot: destination of completions
    region_e                region_q;
    logic [OFFSET_BITS-1:2] offset_d, offset_q;       // of the next DW
    logic [10:0]            remaining_d, remaining_q; // number of DWs from there on
    logic [10:0]            chunk_d, chunk_q;         // DWs left in this completion
    logic                   first_d, first_q;         // nothing has been moved yet
    logic                   unsupported_d, unsupported_q;
    logic                   header_due_d, header_due_q; // a completion begins with the next DW
    logic                   refused_d, refused_q;
    logic [127:0]           collected_q;
    logic [1:0]             collect_q;      // collected DWs of the next beat
    logic                   checking_q;     // the register file's answer belongs to a write of this packet

    logic                   count_unsupported, count_refused;
    logic [31:0]            unsupported_count_q, refused_count_q;
    logic [1:0]             lane;
    logic [2:0]             room;           // lanes from there to the end of the beat
    logic [10:0]            step;           // DWs in this beat
    logic                   last_dword;
    logic [1:0]             collect_lane;

    assign active = state_q != STATE_IDLE || in_valid;
    assign collect_lane = lane + collect_q;
    assign lane = offset_q[3:2];
    assign room = 3'd4 - {1'b0, lane};
    assign last_dword = remaining_q == 11'd1;

    // --- byte enables and byte counts (PCI Express Base Specification, clauses 2.2.5 and 2.3.1.1) --------------------

    logic       single;       // request of one DW
    logic [3:0] last_enable;  // of the last DW
    logic [1:0] skip, trim;   // bytes not enabled at the very beginning, at the very end

    assign single = {request_q.dw0.length == '0, request_q.dw0.length} == 11'd1;
    assign last_enable = single ? request_q.first_be : request_q.last_be;

    always_comb begin
        skip = 2'd0;
        trim = 2'd0;
        if (state_q == STATE_COMPLETE_HEADER) begin
            if (!request_q.first_be[0] && request_q.first_be != '0) begin
                skip = request_q.first_be[1] ? 2'd1 : request_q.first_be[2] ? 2'd2 : 2'd3;
            end
            trim = last_enable[3] ? 2'd0 : last_enable[2] ? 2'd1 : last_enable[1] ? 2'd2 : 2'd3;
        end
    end

    // --- completions -----------------------------------------------------------------------------------------------

    peach2_pkg::completion_t completion;
    logic [10:0]             mps_dwords, to_boundary, chunk;
    logic [12:0]             byte_count;
    logic                    out_taken;

    always_comb begin
        mps_dwords = 11'd1 << (cfg_mps_log2_i - 4'd2);
        to_boundary = '0;
        chunk = '0;
        byte_count = '0;
        completion = '0;
        step = '0;
        beat_o = '0;
        if (state_q == STATE_COMPLETE_HEADER) begin
            to_boundary = mps_dwords - ({1'b0, offset_q[11:2]} & (mps_dwords - 11'd1));
            chunk = remaining_q < to_boundary ? remaining_q : to_boundary;
            byte_count = {remaining_q, 2'b00} - {11'd0, trim} - (first_q ? {11'd0, skip} : 13'd0);
            completion.dw0.fmt = unsupported_q ? peach2_pkg::FMT_3DW : peach2_pkg::FMT_3DW_DATA;
            completion.dw0.typ = peach2_pkg::TYPE_COMPLETION;
            completion.dw0.traffic = request_q.dw0.traffic;
            completion.dw0.flags[3:2] = request_q.dw0.flags[3:2]; // attributes
            completion.dw0.length = unsupported_q ? 10'd0 : chunk[9:0];
            completion.completer = cfg_requester_i;
            completion.status = unsupported_q ? peach2_pkg::CPL_UNSUPPORTED : peach2_pkg::CPL_SUCCESS;
            completion.byte_count = byte_count[11:0];
            completion.requester = request_q.requester;
            completion.tag = request_q.tag;
            completion.lower_address = {offset_q[6:2], first_q ? skip : 2'd0};
            beat_o.sop = 1'b1;
            beat_o.eop = unsupported_q;
            beat_o.data = completion;
        end else if (state_q == STATE_COMPLETE_DATA) begin
            step = chunk_q < {8'd0, room} ? chunk_q : {8'd0, room};
            beat_o.eop = step == chunk_q;
            beat_o.empty = beat_o.eop ? 2'd3 - (lane + step[1:0] - 2'd1) : 2'd0;
            beat_o.data = region_q == REGION_MEMORY ? mem_rdata_i : collected_q;
        end
    end

    assign valid_o = state_q == STATE_COMPLETE_HEADER || state_q == STATE_COMPLETE_DATA;
    assign dest_o = {{(peach2_pkg::DESTS - 4){1'b0}}, port_q};
    assign out_taken = valid_o && ready_i;

    // --- flow ------------------------------------------------------------------------------------------------------

    always_comb begin
        in_ready = state_q == STATE_IDLE || state_q == STATE_WRITE_MEMORY || state_q == STATE_WRITE_DISCARD;
        if (state_q == STATE_WRITE_REGISTER) begin
            in_ready = lane == 2'd3 || last_dword;
        end
    end

    // --- state -----------------------------------------------------------------------------------------------------

    always_comb begin
        state_d = state_q;
        offset_d = offset_q;
        remaining_d = remaining_q;
        chunk_d = chunk_q;
        first_d = first_q;
        unsupported_d = unsupported_q;
        header_due_d = header_due_q;
        refused_d = refused_q;
        count_unsupported = 1'b0;
        count_refused = 1'b0;
        if (active) begin
            refused_d = refused_q || (checking_q && !reg_mapped_i);
            case (state_q)
                STATE_IDLE: begin
                    if (in_valid) begin
                        offset_d = header_offset;
                        remaining_d = header_dwords;
                        first_d = 1'b1;
                        header_due_d = 1'b1;
                        unsupported_d = in_unsupported || header_region == REGION_NOTHING ||
                                        (header_region == REGION_REGISTER && header_dwords > 11'(REGISTER_READ_MAX));
                        refused_d = 1'b0;
                        if (header_is_write) begin
                            if (header_region == REGION_MEMORY) begin
                                state_d = STATE_WRITE_MEMORY;
                            end else if (header_region == REGION_REGISTER && (from_north || raises)) begin
                                state_d = STATE_WRITE_REGISTER;
                            end else begin
                                state_d = STATE_WRITE_DISCARD;
                            end
                        end else begin
                            state_d = header_region == REGION_REGISTER && !unsupported_d ? STATE_READ_REGISTER :
                                                                                           STATE_COMPLETE_HEADER;
                        end
                    end
                end
                STATE_WRITE_MEMORY: begin
                    if (in_valid) begin
                        first_d = 1'b0;
                        offset_d = offset_q + 15'(room);
                        remaining_d = remaining_q - 11'(room);
                        if (in.eop) begin
                            state_d = STATE_IDLE;
                        end
                    end
                end
                STATE_WRITE_REGISTER: begin
                    if (in_valid) begin
                        first_d = 1'b0;
                        offset_d = offset_q + 15'd1;
                        remaining_d = remaining_q - 11'd1;
                        if (taken && in.eop) begin
                            state_d = STATE_WRITE_END;
                        end
                    end
                end
                STATE_WRITE_END: begin
                    count_refused = refused_d;
                    state_d = STATE_IDLE;
                end
                STATE_WRITE_DISCARD: begin
                    if (in_valid && in.eop) begin
                        count_refused = 1'b1;
                        state_d = STATE_IDLE;
                    end
                end
                STATE_READ_REGISTER: begin
                    state_d = STATE_COLLECT;
                end
                STATE_COLLECT: begin
                    // offset_q is still the beat's first DW; collect_q counts on from it.
                    if (first_q && header_due_q && collect_q == 2'd0 && !reg_mapped_i) begin
                        unsupported_d = 1'b1;
                        state_d = STATE_COMPLETE_HEADER;
                    end else if (11'(collect_q) + 11'd1 == remaining_q || collect_lane == 2'd3) begin
                        state_d = header_due_q ? STATE_COMPLETE_HEADER : STATE_COMPLETE_DATA;
                    end else begin
                        state_d = STATE_READ_REGISTER;
                    end
                end
                STATE_COMPLETE_HEADER: begin
                    chunk_d = chunk;
                    header_due_d = 1'b0;
                    if (out_taken) begin
                        count_unsupported = unsupported_q;
                        state_d = unsupported_q ? STATE_IDLE : STATE_COMPLETE_DATA;
                    end
                end
                STATE_COMPLETE_DATA: begin
                    if (out_taken) begin
                        first_d = 1'b0;
                        offset_d = offset_q + 15'(step);
                        remaining_d = remaining_q - step;
                        chunk_d = chunk_q - step;
                        header_due_d = chunk_d == '0;
                        if (remaining_d == '0) begin
                            state_d = STATE_IDLE;
                        end else if (region_q == REGION_REGISTER) begin
                            state_d = STATE_READ_REGISTER;
                        end else if (header_due_d) begin
                            state_d = STATE_COMPLETE_HEADER;
                        end
                    end
                end
                default: begin
                    state_d = STATE_IDLE;
                end
            endcase
        end
    end

    always_ff @(posedge clk_i) begin
        if (rst_i) begin
            state_q <= STATE_IDLE;
            checking_q <= 1'b0;
            unsupported_count_q <= '0;
            refused_count_q <= '0;
        end else if (active) begin
            state_q <= state_d;
            checking_q <= state_q == STATE_WRITE_REGISTER && in_valid && reg_enable_o != '0;
            if (count_unsupported) begin
                unsupported_count_q <= unsupported_count_q + 32'd1;
            end
            if (count_refused) begin
                refused_count_q <= refused_count_q + 32'd1;
            end
        end
    end

    always_ff @(posedge clk_i) begin
        if (active) begin
            offset_q <= offset_d;
            remaining_q <= remaining_d;
            chunk_q <= chunk_d;
            first_q <= first_d;
            unsupported_q <= unsupported_d;
            header_due_q <= header_due_d;
            refused_q <= refused_d;
        end
        if (state_q == STATE_IDLE && in_valid) begin
            request_q <= header;
            port_q <= grant[3:0];
            region_q <= header_region;
        end
        if (state_q == STATE_COLLECT) begin
            collect_q <= collect_q + 2'd1;
            collected_q[32*collect_lane +: 32] <= reg_mapped_i ? reg_rdata_i : 32'd0;
        end else if (state_q != STATE_READ_REGISTER) begin
            collect_q <= 2'd0;
        end
    end

    // --- the register file -------------------------------------------------------------------------------------------

    assign reg_access_o = state_q == STATE_READ_REGISTER || (state_q == STATE_WRITE_REGISTER && in_valid);

    always_comb begin
        reg_index_o = '0;
        reg_enable_o = '0;
        reg_wdata_o = '0;
        if (reg_access_o) begin
            reg_index_o = offset_q[REGISTER_BITS-1:2] + 10'(collect_q);
            reg_wdata_o = in.data[32*lane +: 32];
            if (state_q == STATE_WRITE_REGISTER) begin
                reg_enable_o = first_q ? request_q.first_be : last_dword ? request_q.last_be : 4'hf;
            end
        end
    end

    // --- the internal memory -----------------------------------------------------------------------------------------

    always_comb begin
        mem_read_o = region_q == REGION_MEMORY && (state_q == STATE_COMPLETE_HEADER ||
                                                   (state_q == STATE_COMPLETE_DATA && ready_i));
        mem_write_o = state_q == STATE_WRITE_MEMORY && in_valid;
        mem_index_o = offset_q[MEMORY_BITS-1:4];
        if (state_q == STATE_COMPLETE_DATA) begin
            mem_index_o = offset_q[MEMORY_BITS-1:4] + 11'd1;
        end
        mem_wdata_o = in.data;
        mem_enable_o = '0;
        if (mem_write_o) begin
            for (int unsigned k = 0; k < 4; k++) begin
                if (k >= 32'(lane) && k - 32'(lane) < 32'(remaining_q)) begin
                    mem_enable_o[4*k +: 4] = 4'hf;
                    if (k - 32'(lane) + 32'd1 == 32'(remaining_q)) begin
                        mem_enable_o[4*k +: 4] = last_enable;
                    end
                    if (first_q && k == 32'(lane)) begin
                        mem_enable_o[4*k +: 4] = request_q.first_be;
                    end
                end
            end
        end
    end

    assign unsupported_o = unsupported_count_q;
    assign refused_o = refused_count_q;
    assign idle_o = state_q == STATE_IDLE;
    assign still_o = (state_q == STATE_IDLE && !in_valid) || (valid_o && !ready_i);

    logic unused_ok;
    assign unused_ok = &{1'b0, in.empty, request_q, byte_count[12]};

`ifndef SYNTHESIS
    completion_beat_is_stable_until_taken: assert property (@(posedge clk_i) disable iff (rst_i)
        valid_o && !ready_i |=> valid_o && $stable(beat_o) && $stable(dest_o));
    request_begins_with_its_header: assert property (@(posedge clk_i) disable iff (rst_i)
        taken |-> in.sop == (state_q == STATE_IDLE));
    read_has_one_beat: assert property (@(posedge clk_i) disable iff (rst_i)
        taken && state_q == STATE_IDLE |-> in.eop == !header_is_write);
    write_payload_matches_its_length: assert property (@(posedge clk_i) disable iff (rst_i)
        taken && state_q == STATE_WRITE_MEMORY |-> in.eop == (remaining_q <= 11'(room)));
    register_write_payload_matches_its_length: assert property (@(posedge clk_i) disable iff (rst_i)
        taken && state_q == STATE_WRITE_REGISTER |-> in.eop == last_dword);
    read_never_runs_past_its_length: assert property (@(posedge clk_i) disable iff (rst_i)
        state_q == STATE_COMPLETE_DATA |-> chunk_q != '0 && chunk_q <= remaining_q);
    completion_never_exceeds_the_payload_size: assert property (@(posedge clk_i) disable iff (rst_i)
        state_q == STATE_COMPLETE_DATA |-> chunk_q <= mps_dwords);
    payload_size_is_legal: assert property (@(posedge clk_i) disable iff (rst_i)
        cfg_mps_log2_i >= 4'd7 && cfg_mps_log2_i <= 4'd12);
`endif
endmodule
