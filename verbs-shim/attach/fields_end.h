// Removes the meaning that the including file gave to the fields of requests.def. Include it after each use of them.
#undef U64
#undef U32
#undef FLAG
#undef GPU
#undef GPU_QUEUE
#undef HOST_ID
#undef STRUCT
#undef COMMAND
#undef NONE
