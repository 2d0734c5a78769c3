// placeholder
#include "rig.h"
