// The output of an address. Combinational.
//
// An address in the shared window goes to the output with the lowest number whose route is enabled and whose bounds
// contain its masked window offset; an address outside the window has no output.
module peach2_route (
    input  logic [63:0] address_i,
    input  logic [63:peach2_regs_pkg::WINDOW_BITS] window_base_i,
    // 0 N, 1 E, 2 W, 3 S, 4 this board, 5 E, 6 W, 7 S. A cable port has two entries, because the range of one direction
    // of a ring wraps around.
    input  logic [peach2_regs_pkg::ROUTE_COUNT*peach2_regs_pkg::ROUTE_RW_BITS-1:0] routes_i,
    output logic        in_window_o,
    output logic [4:0]  hit_o          // one-hot or zero: N E W S, this board
);
    localparam int unsigned ROUTES = peach2_regs_pkg::ROUTE_COUNT;
    localparam int unsigned BITS = peach2_regs_pkg::ROUTE_RW_BITS;

    if (ROUTES != 8) begin : gen_illegal
        $error("peach2_route: registers.def does not fit the ports");
    end

    peach2_regs_pkg::route_mask_t address; // laid out as in the registers
    peach2_regs_pkg::route_rw_t   route;
    logic [ROUTES-1:0] match, first;

    assign in_window_o = address_i[63:peach2_regs_pkg::WINDOW_BITS] == window_base_i;
    assign address = address_i;

    always_comb begin
        match = '0;
        first = '0;
        hit_o = '0;
        route = '0;
        if (in_window_o) begin
            for (int unsigned k = 0; k < ROUTES; k++) begin
                route = routes_i[BITS*k +: BITS];
                match[k] = route.control.enable && (address.pages & route.mask.pages) >= route.lower.pages &&
                           (address.pages & route.mask.pages) <= route.upper.pages;
            end
            first = match & (~match + 8'd1);
            hit_o = {first[4], first[3] | first[7], first[2] | first[6], first[1] | first[5], first[0]};
        end
    end

`ifndef SYNTHESIS
    always_comb begin
        route_takes_at_most_one_output: assert ($onehot0(hit_o));
    end
`endif

    logic unused_ok;
    assign unused_ok = &{1'b0, address, route};
endmodule
