// Calls a target with each file of a corpus, and with what a cut or a wrong byte makes of it: "fuzz_NAME FOLDER"; or with
// inputs of random bytes, which are the same each time: "fuzz_NAME --random COUNT".
#include <dirent.h>
#include <string.h>

#include "fuzz.h"
#include "sim/kernel/random.h"
#include "sim/kernel/sim.h"

enum { INPUT_MAX = 1 << 20, CUTS = 8, RANDOM_BYTES = 2000 };

static size_t file_read(const char *folder, const char *name, uint8_t *data)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    FUZZ_HOLDS(file != NULL, "%s cannot be read", path);
    size_t size = fread(data, 1, INPUT_MAX, file);
    (void)fclose(file);
    return size;
}

// An input has its exact size on the heap, so that a sanitizer sees reads behind it.
static void call(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);
    FUZZ_HOLDS(copy != NULL, "no memory");
    memcpy(copy, data, size);
    (void)LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void call_variants(uint8_t *data, size_t size)
{
    call(data, size);
    for (size_t i = 1; i < CUTS; i++) {
        size_t at = size * i / CUTS;
        call(data, at);
        if (at < size) {
            data[at] ^= 0x81;
            call(data, size);
            data[at] ^= 0x81;
        }
    }
}

static int random_call(uint64_t count)
{
    static uint8_t data[RANDOM_BYTES];
    for (uint64_t seed = 0; seed < count; seed++) {
        struct sim_random random;
        sim_random_init(&random, seed, "fuzz");
        size_t size = 1 + sim_random_below(&random, RANDOM_BYTES);
        for (size_t i = 0; i < size; i++) {
            data[i] = (uint8_t)sim_random_below(&random, 256);
        }
        call(data, size);
    }
    (void)printf("%llu random inputs\n", (unsigned long long)count);
    return 0;
}

static int replay(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--random") == 0) {
        return random_call(strtoull(argv[2], NULL, 10));
    }
    struct dirent **entries;
    int count = argc == 2 ? scandir(argv[1], &entries, NULL, alphasort) : -1, called = 0;
    uint8_t *data = malloc(INPUT_MAX);
    if (count < 0 || data == NULL) {
        (void)fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.') {
            call_variants(data, file_read(argv[1], entries[i]->d_name, data));
            called++;
        }
        free(entries[i]);
    }
    free(entries);
    free(data);
    (void)printf("%d inputs of %s\n", called, argv[1]);
    return called > 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    return sim_main(argc, argv, replay);
}
