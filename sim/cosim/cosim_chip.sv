// PEACH2 as the co-simulation runs it: the chip, and a register for the one input that its logic depends on before an
// edge.
//
// Nearly all of the chip depends on tx_room_i without a register in between. As a port of the model it would cost an
// evaluation of that logic at every change of the clock, whether or not it has changed. Here it changes with an event
// of its own, so the logic is evaluated again only after a change. tx_ready_i and rx_* reach registers at once.
module cosim_chip (
    input  logic         clk_i,
    input  logic         rst_i,
    input  logic [3:0]   rx_valid_i,
    output logic [3:0]   rx_ready_o,
    input  logic [15:0]  rx_mark_i,
    input  logic [511:0] rx_data_i,
    input  logic [2:0]   rx_bar_i,
    output logic [3:0]   tx_valid_o,
    input  logic [3:0]   tx_ready_i,
    input  logic [3:0]   tx_room_i,
    input  logic         tx_room_changed_i, // rises between two edges of the clock, after a change of tx_room_i
    output logic [15:0]  tx_mark_o,
    output logic [511:0] tx_data_o,
    input  logic [15:0]  cfg_requester_i,
    input  logic [3:0]   cfg_mps_log2_i,
    input  logic [15:0]  cfg_start_cycles_i,
    input  logic [15:0]  cfg_fetch_cycles_i,
    input  logic [15:0]  cfg_finish_cycles_i,
    input  logic [9:0]   cfg_read_bytes_i,
    input  logic [5:0]   cfg_read_tags_i,
    input  logic [2:0]   cfg_prefetch_i,
    output logic         idle_o,
    output logic         still_o
);
    logic [3:0] tx_room_q;

    always_ff @(posedge tx_room_changed_i) begin
        tx_room_q <= tx_room_i;
    end

    peach2 i_peach2 (
        .clk_i, .rst_i, .rx_valid_i, .rx_ready_o, .rx_mark_i, .rx_data_i, .rx_bar_i, .tx_valid_o, .tx_ready_i,
        .tx_room_i(tx_room_q), .tx_mark_o, .tx_data_o, .cfg_requester_i, .cfg_mps_log2_i, .cfg_start_cycles_i,
        .cfg_fetch_cycles_i, .cfg_finish_cycles_i, .cfg_read_bytes_i, .cfg_read_tags_i, .cfg_prefetch_i, .idle_o,
        .still_o
    );
endmodule
