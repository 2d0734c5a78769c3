// regmap: turns registers.def into Verilog, C headers, or documentation.
//
//     regmap package|file|header|table|markdown OUTPUT
//
// A tool of the build; it checks the map first (offsets inside the stride, no overlap, fields inside the register) and
// fails instead of writing a wrong output.
#include <string.h>

#include "map.h"

static const struct {
    const char *name;
    void (*write)(FILE *out);
} formats[] = {{"package", verilog_package_write},
               {"file", verilog_register_file_write},
               {"header", header_write},
               {"table", table_write},
               {"markdown", markdown_write}};

static int file_write(const char *path, void (*write)(FILE *out))
{
    FILE *out = fopen(path, "w");
    if (out == NULL) {
        perror(path);
        return 1;
    }
    write(out);
    bool good = !ferror(out);
    good = fclose(out) == 0 && good;
    if (!good) {
        fprintf(stderr, "regmap: %s could not be written\n", path);
    }
    return good ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: regmap package|file|header|table|markdown OUTPUT\n");
        return 2;
    }
    if (!map_check()) {
        return 1;
    }
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (strcmp(formats[i].name, argv[1]) == 0) {
            return file_write(argv[2], formats[i].write);
        }
    }
    fprintf(stderr, "regmap: unknown format %s\n", argv[1]);
    return 2;
}
