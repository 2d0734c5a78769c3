// Ends the meaning that its includer gave to the fields of requests.def. Included once for each.
#undef U64
#undef U32
#undef FLAG
#undef GPU
#undef GPU_QUEUE
#undef HOST_ID
#undef STRUCT
#undef COMMAND
#undef NONE
