// C++ programs include the TCA library's headers without changes.
#include <cuda_runtime.h>
#include <tca-api.h>

int tca_header_compiles(tcaDesc *desc);

int tca_header_compiles(tcaDesc *desc)
{
    tcaDMAFlag flag = tcaDMANotify;
    float *device, *host;
    if (cudaMalloc(&device, 64) != cudaSuccess || cudaMallocHost(&host, 64) != cudaSuccess ||
        cudaMemcpyAsync(device, host, 64, cudaMemcpyDefault) != cudaSuccess || cudaThreadSynchronize() != cudaSuccess) {
        return TCA_ERROR_OUT_OF_MEMORY;
    }
    return desc == nullptr ? TCA_SUCCESS : tcaDescSet(desc, flag);
}
