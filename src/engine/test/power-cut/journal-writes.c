/*
 * Preloaded into a process that writes a store: notes in the file that POWER_JOURNAL names, in their order, each write
 * to and each sync of bsvc.mdb, and what the process writes to the file "acknowledged".
 *
 * A record: kind (W a write, D one that is synced by itself, S a sync, A an acknowledgement), offset and length in eight
 * bytes each, then the bytes.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static ssize_t (*real_write)(int, const void *, size_t);

static ssize_t raw(int fd, const void *bytes, size_t length) {
  if (!real_write) real_write = dlsym(RTLD_NEXT, "write");
  return real_write(fd, bytes, length);
}

static int journal(void) {
  static int file = -1;
  if (file < 0) file = open(getenv("POWER_JOURNAL"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  return file;
}

/* What the descriptor is of: W or D for the store, A for the acknowledgements, 0 for anything else. */
static char kind_of(int fd) {
  char link[32], path[4096];
  char digits[12];
  int n = 0, at = 14;
  ssize_t length;
  const char *name;
  memcpy(link, "/proc/self/fd/", 14);
  do digits[n++] = '0' + fd % 10; while ((fd /= 10) > 0);
  while (n > 0) link[at++] = digits[--n];
  link[at] = 0;
  length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  name = strrchr(path, '/');
  if (!name) return 0;
  if (!strcmp(name, "/acknowledged")) return 'A';
  if (strcmp(name, "/bsvc.mdb")) return 0;
  return 'W';
}

static void note(int fd, char kind, const struct iovec *parts, int count, int64_t offset, int64_t length) {
  int64_t numbers[2] = {offset, length};
  int64_t left = length;
  if (kind == 'W' && (fcntl(fd, F_GETFL) & O_DSYNC)) kind = 'D';
  pthread_mutex_lock(&lock);
  raw(journal(), &kind, 1);
  raw(journal(), numbers, sizeof numbers);
  for (int n = 0; n < count && left > 0; n++) {
    int64_t part = (int64_t)parts[n].iov_len < left ? (int64_t)parts[n].iov_len : left;
    raw(journal(), parts[n].iov_base, part);
    left -= part;
  }
  pthread_mutex_unlock(&lock);
}

static ssize_t noted(int fd, const struct iovec *parts, int count, off_t offset, ssize_t done) {
  char kind = done > 0 ? kind_of(fd) : 0;
  if (kind) note(fd, kind, parts, count, offset, done);
  return done;
}

#define REAL(name) \
  static __typeof__(&name) real; \
  if (!real) real = dlsym(RTLD_NEXT, #name)

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) {
  struct iovec part = {(void *)bytes, length};
  REAL(pwrite);
  return noted(fd, &part, 1, offset, real(fd, bytes, length, offset));
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t offset) {
  struct iovec part = {(void *)bytes, length};
  REAL(pwrite64);
  return noted(fd, &part, 1, offset, real(fd, bytes, length, offset));
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
  REAL(pwritev);
  return noted(fd, parts, count, offset, real(fd, parts, count, offset));
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t offset) {
  REAL(pwritev64);
  return noted(fd, parts, count, offset, real(fd, parts, count, offset));
}

/* Without an offset the file's own position counts, which has moved on by now. */
ssize_t write(int fd, const void *bytes, size_t length) {
  struct iovec part = {(void *)bytes, length};
  ssize_t done = raw(fd, bytes, length);
  char kind = done > 0 ? kind_of(fd) : 0;
  if (kind) note(fd, kind, &part, 1, kind == 'A' ? 0 : lseek(fd, 0, SEEK_CUR) - done, done);
  return done;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
  ssize_t done;
  char kind;
  REAL(writev);
  done = real(fd, parts, count);
  kind = done > 0 ? kind_of(fd) : 0;
  if (kind) note(fd, kind, parts, count, kind == 'A' ? 0 : lseek(fd, 0, SEEK_CUR) - done, done);
  return done;
}

static int synced(int fd, int failed) {
  if (!failed && kind_of(fd) == 'W') note(-1, 'S', NULL, 0, 0, 0);
  return failed;
}

int fdatasync(int fd) {
  REAL(fdatasync);
  return synced(fd, real(fd));
}

int fsync(int fd) {
  REAL(fsync);
  return synced(fd, real(fd));
}
