// Closes all possible descriptor numbers, as daemons do. None of them is open.
#include <unistd.h>

int main(void)
{
    int wrong = 0;
    for (int fd = 1000; fd < 20000; fd++) {
        wrong += close(fd) == 0;
    }
    return wrong;
}
