/*
 * Preloaded into a process that writes a store: a sync of bsvc.mdb takes until the file that HOLD_SYNCS names is gone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void hold(int fd) {
  char link[32], path[4096];
  ssize_t length;
  const char *name;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return;
  path[length] = 0;
  name = strrchr(path, '/');
  if (!name || strcmp(name, "/bsvc.mdb")) return;
  while (access(getenv("HOLD_SYNCS"), F_OK) == 0) usleep(1000);
}

#define REAL(name) \
  static __typeof__(&name) real; \
  if (!real) real = dlsym(RTLD_NEXT, #name)

int fdatasync(int fd) {
  REAL(fdatasync);
  hold(fd);
  return real(fd);
}

int fsync(int fd) {
  REAL(fsync);
  hold(fd);
  return real(fd);
}
