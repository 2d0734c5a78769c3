// C++ programs include the TCA library's headers as they are.
#include <cuda_runtime.h>
#include <tca-api.h>

int tca_header_compiles(tcaDesc *desc);

int tca_header_compiles(tcaDesc *desc)
{
    tcaDMAFlag flag = tcaDMANotify;
    return desc == nullptr ? TCA_SUCCESS : tcaDescSet(desc, flag);
}
