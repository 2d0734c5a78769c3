// Which output does an address take? Combinational.
//
// An address in the shared window takes the output with the lowest number whose route is enabled and whose bounds
// hold its masked window offset; an address elsewhere takes none.
module peach2_route (
    input  logic [63:0]    address_i,
    input  logic [24:0]    window_base_i, // bits 63:39
    // Bits 38:12 of the route registers, entry k at [27*k +: 27]: 0 N, 1 E, 2 W, 3 S, 4 this
    // board, 5 E, 6 W, 7 S. A cable port has two entries, as what one direction of a ring reaches wraps around.
    input  logic [8*27-1:0] mask_i,
    input  logic [8*27-1:0] lower_i,
    input  logic [8*27-1:0] upper_i,
    input  logic [7:0]     enable_i,
    output logic           in_window_o,
    output logic [4:0]     hit_o          // one-hot or zero: N E W S, this board
);
    localparam int unsigned BITS = peach2_pkg::ROUTE_BITS;
    localparam int unsigned LSB = peach2_pkg::ROUTE_LSB;

    localparam int unsigned ROUTES = peach2_pkg::ROUTES;

    logic [ROUTES-1:0] match, first;
    logic [BITS-1:0] offset;

    assign in_window_o = address_i[63:peach2_pkg::WINDOW_BITS] == window_base_i;
    assign offset = address_i[LSB +: BITS];

    always_comb begin
        match = '0;
        if (in_window_o) begin
            for (int unsigned k = 0; k < ROUTES; k++) begin
                match[k] = enable_i[k] && (offset & mask_i[BITS*k +: BITS]) >= lower_i[BITS*k +: BITS] &&
                           (offset & mask_i[BITS*k +: BITS]) <= upper_i[BITS*k +: BITS];
            end
        end
    end

    assign first = match & (~match + 8'd1);
    assign hit_o = {first[4], first[3] | first[7], first[2] | first[6], first[1] | first[5], first[0]};

`ifndef SYNTHESIS
    always_comb begin
        route_takes_at_most_one_output: assert ($onehot0(hit_o));
    end
`endif

    logic unused_ok;
    assign unused_ok = &{1'b0, address_i[LSB-1:0]};
endmodule
