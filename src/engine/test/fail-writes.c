/*
 * Preloaded into a process that writes a store: fails its writes to bsvc.mdb as the file that FAIL_WRITES names says.
 * It holds what is to fail ("meta" the first two pages, "data" all others, "sync" the syncs), the number of the error,
 * and how often it happens, -1 for always.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGES_OF_META 2
#define PAGE_BYTES 4096

static int is_store(int fd) {
  char link[32], path[4096];
  ssize_t length;
  const char *name;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  name = strrchr(path, '/');
  return name && !strcmp(name, "/bsvc.mdb");
}

/* The error that this call is to fail with, 0 for none. */
static int fault(int fd, const char *what) {
  char wanted[16];
  int error, times;
  FILE *order;
  if (!is_store(fd)) return 0;
  order = fopen(getenv("FAIL_WRITES"), "r");
  if (!order) return 0;
  if (fscanf(order, "%15s %d %d", wanted, &error, &times) != 3) times = 0;
  fclose(order);
  if (times == 0 || strcmp(wanted, what)) return 0;
  if (times > 0 && (order = fopen(getenv("FAIL_WRITES"), "w"))) {
    fprintf(order, "%s %d %d\n", wanted, error, times - 1);
    fclose(order);
  }
  return error;
}

static const char *part(off_t offset) {
  return offset < PAGES_OF_META * PAGE_BYTES ? "meta" : "data";
}

#define REAL(name) \
  static __typeof__(&name) real; \
  if (!real) real = dlsym(RTLD_NEXT, #name)
#define FAIL(fd, what) \
  int error = fault(fd, what); \
  if (error) { \
    errno = error; \
    return -1; \
  }

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) {
  REAL(pwrite);
  FAIL(fd, part(offset));
  return real(fd, bytes, length, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t offset) {
  REAL(pwrite64);
  FAIL(fd, part(offset));
  return real(fd, bytes, length, offset);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
  REAL(pwritev);
  FAIL(fd, part(offset));
  return real(fd, parts, count, offset);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t offset) {
  REAL(pwritev64);
  FAIL(fd, part(offset));
  return real(fd, parts, count, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
  REAL(writev);
  FAIL(fd, part(lseek(fd, 0, SEEK_CUR)));
  return real(fd, parts, count);
}

ssize_t write(int fd, const void *bytes, size_t length) {
  REAL(write);
  FAIL(fd, part(lseek(fd, 0, SEEK_CUR)));
  return real(fd, bytes, length);
}

int fdatasync(int fd) {
  REAL(fdatasync);
  FAIL(fd, "sync");
  return real(fd);
}

int fsync(int fd) {
  REAL(fsync);
  FAIL(fd, "sync");
  return real(fd);
}
