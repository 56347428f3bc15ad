/* Preloaded into a process: each of its syncs takes the milliseconds that the file named by SLOW_SYNCS says longer. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_as_told(void) {
  FILE *file = fopen(getenv("SLOW_SYNCS"), "r");
  int ms = 0;
  if (!file) return;
  if (fscanf(file, "%d", &ms) != 1) ms = 0;
  fclose(file);
  usleep(ms * 1000);
}

#define SLOW(name) \
  int name(int fd) { \
    static __typeof__(&name) real; \
    if (!real) real = dlsym(RTLD_NEXT, #name); \
    wait_as_told(); \
    return real(fd); \
  }

SLOW(fdatasync)
SLOW(fsync)
