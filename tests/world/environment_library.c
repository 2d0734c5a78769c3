// A library that a user preloads.
const char *environment_user(void);
const char *environment_user(void)
{
    return "user";
}
