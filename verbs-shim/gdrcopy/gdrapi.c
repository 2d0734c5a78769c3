#include "verbs-shim/gdrcopy/gdrapi.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "verbs-shim/backend/backend.h"
#include "verbs-shim/cuda/cuda_runtime_api.h"
#include "verbs-shim/cuda/pin.h"

// A mapping is a number in a range of the GPU, apart from the device pointers; the range stands for the GPU's BAR.
#define MAPPING_BASE  0x4300000000ull
#define MAPPING_SHIFT 36

struct window {
    struct window *next;
    const struct gdr *gdr;
    unsigned long number;
    struct cuda_pin *pin;
    uint64_t va;
    size_t mapped_bytes; // 0: not mapped
    uint64_t mapping;
};

struct gdr {
    struct gdr *next;
};

// The library's state of one process.
struct library {
    struct backend backend;
    struct gdr *opened;
    struct window *windows;
    unsigned long window_count; // windows ever made
};

static void library_release(void *state)
{
    struct library *library = state;
    while (library->opened != NULL) {
        struct gdr *gdr = library->opened;
        library->opened = gdr->next;
        free(gdr);
    }
    while (library->windows != NULL) {
        struct window *window = library->windows;
        library->windows = window->next;
        free(window);
    }
    free(library);
}

static struct library *library_find(void)
{
    const struct backend_process *process = backend_current();
    return process != NULL ? process->libraries[BACKEND_LIBRARY_GDR].state : NULL;
}

static struct library *library_make(void)
{
    struct backend_process *process = backend_current();
    struct library *library = library_find();
    if (library != NULL || process == NULL) {
        return library;
    }
    library = calloc(1, sizeof *library);
    if (library != NULL) {
        library->backend = process->backend;
        process->libraries[BACKEND_LIBRARY_GDR].state = library;
        process->libraries[BACKEND_LIBRARY_GDR].release = library_release;
    }
    return library;
}

static void pay_call(const struct library *library)
{
    library->backend.ops->cost(library->backend.ctx, BACKEND_COST_CALL, 1);
}

// --- open and close -------------------------------------------------------------------------------------------------

gdr_t gdr_open(void)
{
    int count;
    if (cudaGetDeviceCount(&count) != cudaSuccess) {
        return NULL;
    }
    struct library *library = library_make();
    struct gdr *gdr = library != NULL ? malloc(sizeof *gdr) : NULL;
    if (gdr == NULL) {
        return NULL;
    }
    gdr->next = library->opened;
    library->opened = gdr;
    pay_call(library);
    return gdr;
}

// The link in the list; NULL: it is not open, or no handle is open.
static struct gdr **gdr_link(struct library *library, const struct gdr *gdr)
{
    struct gdr **link = library != NULL ? &library->opened : NULL;
    while (link != NULL && *link != gdr) {
        link = *link != NULL ? &(*link)->next : NULL;
    }
    return gdr != NULL ? link : NULL;
}

static struct window **window_link(struct library *library, unsigned long number)
{
    struct window **link = &library->windows;
    while (*link != NULL && (*link)->number != number) {
        link = &(*link)->next;
    }
    return *link != NULL ? link : NULL;
}

static void window_drop(struct window **link)
{
    struct window *window = *link;
    struct cuda_pin *pin = window->pin;
    *link = window->next;
    free(window);
    cuda_pin_destroy(pin); // takes time: the window must be out of the list before
}

int gdr_close(gdr_t g)
{
    struct library *library = library_find();
    struct gdr **link = gdr_link(library, g);
    if (link == NULL) {
        return EINVAL;
    }
    for (struct window **windows = &library->windows; *windows != NULL;) {
        if ((*windows)->gdr == g) {
            window_drop(windows);
        } else {
            windows = &(*windows)->next;
        }
    }
    *link = g->next;
    free(g);
    return 0;
}

// The window of a handle; NULL: it is not of this process and this gdr. g NULL: any gdr.
static struct window *window_find(gdr_t g, gdr_mh_t handle)
{
    struct library *library = library_find();
    struct window **link = library != NULL ? window_link(library, handle.h) : NULL;
    return link != NULL && (g == NULL || (*link)->gdr == g) ? *link : NULL;
}

// --- pinning --------------------------------------------------------------------------------------------------------

static bool is_permitted(const void *pointer, uint64_t p2p_token, uint32_t va_space)
{
    struct cuda_tokens tokens;
    if (p2p_token == 0 && va_space == 0) {
        return true;
    }
    return cuda_tokens_of(pointer, &tokens) && tokens.p2p == p2p_token && tokens.va_space == va_space;
}

int gdr_pin_buffer(gdr_t g, unsigned long addr, size_t size, uint64_t p2p_token, uint32_t va_space, gdr_mh_t *handle)
{
    struct library *library = library_find();
    const void *pointer = (const void *)(uintptr_t)addr;
    if (gdr_link(library, g) == NULL || handle == NULL || !is_permitted(pointer, p2p_token, va_space)) {
        return EINVAL;
    }
    struct cuda_pin *pin;
    int error = cuda_pin_create(pointer, size, true, &pin);
    if (error != 0) {
        return error == -ENOSPC ? ENOMEM : -error;
    }
    struct window *window = calloc(1, sizeof *window);
    if (window == NULL) {
        cuda_pin_destroy(pin);
        return ENOMEM;
    }
    *window = (struct window){.next = library->windows,
                              .gdr = g,
                              .number = ++library->window_count,
                              .pin = pin,
                              .va = addr - cuda_pin_offset(pin, pointer)};
    library->windows = window;
    handle->h = window->number;
    return 0;
}

int gdr_unpin_buffer(gdr_t g, gdr_mh_t handle)
{
    struct library *library = library_find();
    if (g == NULL || window_find(g, handle) == NULL) {
        return EINVAL;
    }
    window_drop(window_link(library, handle.h));
    return 0;
}

int gdr_get_callback_flag(gdr_t g, gdr_mh_t handle, int *flag)
{
    const struct window *window = g != NULL ? window_find(g, handle) : NULL;
    if (window == NULL || flag == NULL) {
        return EINVAL;
    }
    *flag = window->pin->revoked;
    return 0;
}

int gdr_get_info(gdr_t g, gdr_mh_t handle, gdr_info_t *info)
{
    const struct window *window = g != NULL ? window_find(g, handle) : NULL;
    if (window == NULL || info == NULL) {
        return EINVAL;
    }
    bool mapped = window->mapped_bytes != 0;
    *info = (gdr_info_t){
        .va = window->va,
        .mapped_size = window->pin->bytes,
        .page_size = GPU_PAGE_SIZE,
        .mapped = mapped,
        .wc_mapping = mapped,
        .mapping_type = mapped ? GDR_MAPPING_TYPE_WC : GDR_MAPPING_TYPE_NONE,
    };
    return 0;
}

// --- mapping --------------------------------------------------------------------------------------------------------

int gdr_map(gdr_t g, gdr_mh_t handle, void **va, size_t size)
{
    struct window *window = g != NULL ? window_find(g, handle) : NULL;
    if (window == NULL || va == NULL || size == 0 || size > window->pin->bytes || window->pin->revoked) {
        return EINVAL;
    }
    if (window->mapped_bytes != 0) {
        return EAGAIN;
    }
    pay_call(library_find());
    window->mapped_bytes = size;
    window->mapping = MAPPING_BASE + ((uint64_t)window->pin->gpu << MAPPING_SHIFT) + window->pin->bar_offset;
    *va = (void *)(uintptr_t)window->mapping;
    return 0;
}

int gdr_unmap(gdr_t g, gdr_mh_t handle, void *va, size_t size)
{
    struct window *window = g != NULL ? window_find(g, handle) : NULL;
    if (window == NULL || window->mapped_bytes == 0 || (uintptr_t)va != window->mapping ||
        size != window->mapped_bytes) {
        return EINVAL;
    }
    pay_call(library_find());
    window->mapped_bytes = 0;
    return 0;
}

// Offset in the GPU's BAR; false: not inside the mapping, or the window is closed.
static bool offset_find(const struct window *window, const void *mapped, size_t size, uint64_t *offset_out)
{
    if (window == NULL || window->mapped_bytes == 0 || window->pin->revoked) {
        return false;
    }
    uint64_t offset = (uintptr_t)mapped - window->mapping;
    *offset_out = window->pin->bar_offset + offset;
    return offset <= window->mapped_bytes && size <= window->mapped_bytes - offset;
}

static enum backend_bar bar_of(const struct window *window)
{
    return (enum backend_bar)(BACKEND_BAR_GPU0 + window->pin->gpu);
}

int gdr_copy_to_mapping(gdr_mh_t handle, void *map_d_ptr, const void *h_ptr, size_t size)
{
    const struct window *window = window_find(NULL, handle);
    uint64_t offset;
    if (!offset_find(window, map_d_ptr, size, &offset) || (h_ptr == NULL && size != 0)) {
        return EINVAL;
    }
    const struct backend *backend = &library_find()->backend;
    pay_call(library_find());
    if (size != 0) {
        backend->ops->write_combined(backend->ctx, bar_of(window), offset, h_ptr, size);
        backend->ops->fence(backend->ctx);
    }
    return 0;
}

int gdr_copy_from_mapping(gdr_mh_t handle, void *h_ptr, const void *map_d_ptr, size_t size)
{
    const struct window *window = window_find(NULL, handle);
    uint64_t offset;
    if (!offset_find(window, map_d_ptr, size, &offset) || (h_ptr == NULL && size != 0)) {
        return EINVAL;
    }
    const struct backend *backend = &library_find()->backend;
    pay_call(library_find());
    int error = size != 0 ? backend->ops->read_combined(backend->ctx, bar_of(window), offset, h_ptr, size) : 0;
    return error != 0 ? EIO : 0;
}

// --- versions -------------------------------------------------------------------------------------------------------

void gdr_runtime_get_version(int *major, int *minor)
{
    *major = GDR_API_MAJOR_VERSION;
    *minor = GDR_API_MINOR_VERSION;
}

int gdr_driver_get_version(gdr_t g, int *major, int *minor)
{
    if (gdr_link(library_find(), g) == NULL || major == NULL || minor == NULL) {
        return EINVAL;
    }
    gdr_runtime_get_version(major, minor);
    return 0;
}
