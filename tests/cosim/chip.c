// The fixture of the co-simulation's tests.
#include "tests/cosim/chip.h"

#include <stdlib.h>
#include <string.h>

struct cosim_peach2_config chip_config(void)
{
    return (struct cosim_peach2_config){.requester = REQUESTER_CHIP,
                                        .mps_bytes = 256,
                                        .start_cycles = 10,
                                        .fetch_cycles = 4,
                                        .finish_cycles = 10,
                                        .read_bytes = 256,
                                        .read_tags = 16,
                                        .prefetch = 2};
}

static void on_tx(void *ctx, unsigned port, pcie_tlp_t *tlp)
{
    struct chip *chip = ctx;
    struct chip_port *out = &chip->ports[port];
    if (out->count == out->capacity) {
        out->capacity = out->capacity == 0 ? 64 : out->capacity * 2;
        out->left = realloc(out->left, out->capacity * sizeof *out->left);
    }
    out->left[out->count++] = (struct chip_leaving){tlp, sim_now_ps(chip->sim)};
    if (chip->on_tx != NULL) {
        chip->on_tx(chip, port, tlp);
    }
}

static void on_rx_taken(void *ctx, unsigned port, pcie_tlp_t *tlp)
{
    struct chip *chip = ctx;
    chip->ports[port].taken++;
    pcie_tlp_unref(tlp);
}

struct chip *chip_create(const struct cosim_peach2_config *config)
{
    static const struct cosim_peach2_ops ops = {.tx = on_tx, .rx_taken = on_rx_taken};
    struct cosim_peach2_config usual = chip_config();
    struct sim_config sim_config = {.seed = 1};
    struct chip *chip = calloc(1, sizeof *chip);
    EXPECT_EQ(sim_create(&sim_config, &chip->sim), SIM_OK);
    EXPECT_EQ(pcie_pool_create(&chip->pool), SIM_OK);
    EXPECT_EQ(cosim_clock_create(chip->sim, CHIP_PERIOD_PS, &chip->clock), SIM_OK);
    EXPECT_EQ(cosim_peach2_create(chip->clock, chip->pool, "chip", config != NULL ? config : &usual, &ops, chip, NULL,
                                  &chip->board),
              SIM_OK);
    return chip;
}

void chip_destroy(struct chip *chip)
{
    for (unsigned port = 0; port < COSIM_PORTS; port++) {
        for (unsigned i = 0; i < chip->ports[port].count; i++) {
            pcie_tlp_unref(chip->ports[port].left[i].tlp);
        }
        free(chip->ports[port].left);
    }
    cosim_peach2_destroy(chip->board);
    cosim_clock_destroy(chip->clock);
    EXPECT_EQ(pcie_pool_destroy(chip->pool), 0);
    sim_destroy(chip->sim);
    free(chip);
}

void chip_send(struct chip *chip, unsigned port, unsigned bar, pcie_tlp_t *tlp)
{
    cosim_peach2_rx(chip->board, port, bar, tlp);
}

void chip_run(struct chip *chip)
{
    EXPECT_EQ(sim_run(chip->sim), SIM_RUN_DONE);
}

pcie_tlp_t *chip_next(struct chip *chip, unsigned port)
{
    struct chip_port *out = &chip->ports[port];
    return out->next == out->count ? NULL : out->left[out->next++].tlp;
}

unsigned chip_left(const struct chip *chip)
{
    unsigned count = 0;
    for (unsigned port = 0; port < COSIM_PORTS; port++) {
        count += chip->ports[port].count - chip->ports[port].next;
    }
    return count;
}

void chip_write(struct chip *chip, unsigned port, unsigned bar, uint64_t address, uint32_t bytes, const void *data)
{
    chip_send(chip, port, bar, pcie_tlp_write(chip->pool, REQUESTER_HOST, address, bytes, data));
    chip_run(chip);
}

void chip_read(struct chip *chip, unsigned bar, uint64_t address, uint32_t bytes, uint8_t *data_out)
{
    uint32_t done = 0;
    chip->tag++;
    chip_send(chip, PORT_N, bar, pcie_tlp_read(chip->pool, REQUESTER_HOST, chip->tag, address, bytes));
    chip_run(chip);
    while (done < bytes) {
        pcie_tlp_t *tlp = chip_next(chip, PORT_N);
        ASSERT_NOT_NULL(tlp);
        ASSERT_EQ(tlp->kind, PCIE_TLP_CPLD);
        EXPECT_EQ(tlp->tag, chip->tag);
        EXPECT_EQ(tlp->requester, REQUESTER_HOST);
        EXPECT_EQ(tlp->completer, REQUESTER_CHIP);
        EXPECT_EQ(tlp->byte_count, bytes - done);
        EXPECT_EQ(tlp->lower_address, (address + done) & 0x7f);
        uint32_t carried = pcie_tlp_byte_count(tlp);
        ASSERT_LE(carried, bytes - done);
        memcpy(data_out + done, pcie_tlp_data(tlp) + (tlp->lower_address & 3), carried);
        done += carried;
    }
}

void chip_set32(struct chip *chip, uint32_t offset, uint32_t value)
{
    chip_write(chip, PORT_N, BAR_REGISTERS, offset, sizeof value, &value);
}

void chip_set64(struct chip *chip, uint32_t offset, uint64_t value)
{
    chip_write(chip, PORT_N, BAR_REGISTERS, offset, sizeof value, &value);
}

uint32_t chip_get32(struct chip *chip, uint32_t offset)
{
    uint32_t value = 0;
    chip_read(chip, BAR_REGISTERS, offset, sizeof value, (uint8_t *)&value);
    return value;
}

uint32_t chip_counter(struct chip *chip, uint32_t offset)
{
    return chip_get32(chip, PEACH2_COUNTER_BASE + offset);
}

uint64_t chip_window(unsigned node, unsigned block, uint64_t offset)
{
    return WINDOW_BASE + ((uint64_t)node << 35) + ((uint64_t)block << 33) + offset;
}

static void set_route(struct chip *chip, unsigned output, uint64_t mask, uint64_t lower, uint64_t upper)
{
    uint32_t route = PEACH2_ROUTE_BASE + output * PEACH2_ROUTE_STRIDE;
    chip_set64(chip, route + PEACH2_ROUTE_MASK, mask);
    chip_set64(chip, route + PEACH2_ROUTE_LOWER, lower);
    chip_set64(chip, route + PEACH2_ROUTE_UPPER, upper);
    chip_set32(chip, route + PEACH2_ROUTE_CONTROL, PEACH2_ROUTE_CONTROL_ENABLE_MASK);
}

void chip_join(struct chip *chip)
{
    const uint64_t node_mask = UINT64_C(0xf) << 35;
    const uint64_t block_mask = node_mask | UINT64_C(3) << 33;
    const uint64_t own = (uint64_t)OWN_NODE << 35;
    chip_set64(chip, PEACH2_CHIP_BASE + PEACH2_CHIP_WINDOW_BASE, WINDOW_BASE);
    set_route(chip, PORT_N, block_mask, own, own | (uint64_t)BLOCK_GPU1 << 33);
    set_route(chip, PORT_E, node_mask, UINT64_C(3) << 35, UINT64_C(7) << 35);
    set_route(chip, PORT_W, node_mask, 0, UINT64_C(1) << 35);
    set_route(chip, PORT_S, node_mask, UINT64_C(8) << 35, UINT64_C(15) << 35);
    set_route(chip, 4, block_mask, own | (uint64_t)BLOCK_BOARD << 33, own | (uint64_t)BLOCK_BOARD << 33);
    for (unsigned block = BLOCK_HOST; block <= BLOCK_GPU1; block++) {
        chip_set64(chip, PEACH2_OFFSET_BASE + block * PEACH2_OFFSET_STRIDE + PEACH2_OFFSET_SUBTRACT,
                   chip_window(OWN_NODE, block, 0) - (HOST_BASE + block * HOST_STRIDE));
    }
}

uint32_t chip_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 32);
}

void chip_fill(uint64_t *state, uint8_t *data, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) {
        data[i] = (uint8_t)chip_random(state);
    }
}
