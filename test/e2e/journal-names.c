/*
 * Preloaded into a process: notes in the file that NAMES_JOURNAL names, a line each and in their order, files that are
 * created (C path), directories that are made (M path), names that are given (R from to, tabs between) and what is
 * synced (S path).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void note(char kind, const char *first, const char *second) {
  static int file = -1;
  char line[2 * PATH_MAX + 8];
  char from[PATH_MAX];
  int length;
  if (!getenv("NAMES_JOURNAL")) return;
  if (file < 0) {
    int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
    file = real(getenv("NAMES_JOURNAL"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  }
  if (first[0] != '/') {
    char here[PATH_MAX];
    if (!getcwd(here, sizeof here)) return;
    snprintf(from, sizeof from, "%s/%s", here, first);
    first = from;
  }
  length = snprintf(line, sizeof line, "%c\t%s\t%s\n", kind, first, second);
  if (write(file, line, length) != length) abort();
}

#define REAL(name) \
  static __typeof__(&name) real; \
  if (!real) real = dlsym(RTLD_NEXT, #name)

#define OPEN(name) \
  int name(const char *path, int flags, ...) { \
    int fd, isNew, mode = 0; \
    REAL(name); \
    if (flags & O_CREAT) { \
      va_list rest; \
      va_start(rest, flags); \
      mode = va_arg(rest, int); \
      va_end(rest); \
    } \
    isNew = (flags & O_CREAT) && access(path, F_OK) != 0; \
    fd = real(path, flags, mode); \
    if (fd >= 0 && isNew) note('C', path, ""); \
    return fd; \
  }
OPEN(open)
OPEN(open64)

int mkdir(const char *path, mode_t mode) {
  REAL(mkdir);
  int failed = real(path, mode);
  if (!failed) note('M', path, "");
  return failed;
}

int rename(const char *from, const char *to) {
  REAL(rename);
  int failed = real(from, to);
  if (!failed) note('R', from, to);
  return failed;
}

int link(const char *from, const char *to) {
  REAL(link);
  int failed = real(from, to);
  if (!failed) note('R', from, to);
  return failed;
}

static int synced(int fd, int failed) {
  char link[32], path[PATH_MAX];
  ssize_t length;
  if (failed) return failed;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  length = readlink(link, path, sizeof path - 1);
  if (length > 0) {
    path[length] = 0;
    note('S', path, "");
  }
  return failed;
}

int fsync(int fd) {
  REAL(fsync);
  return synced(fd, real(fd));
}

int fdatasync(int fd) {
  REAL(fdatasync);
  return synced(fd, real(fd));
}
