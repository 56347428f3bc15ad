/*
 * Preloaded into the processes that write a store: notes in the file that POWER_JOURNAL names, in their order over all
 * processes, each write to and each sync of bsvc.mdb, and what they write to the file "acknowledged". The process is
 * killed behind its record of the number that POWER_KILL gives.
 *
 * A record: kind (W a write, B the begin of a sync, S its end, A a line of "acknowledged"), offset and length in eight
 * bytes each, then the bytes. Instead of an offset a sync has its number.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/uio.h>
#include <unistd.h>

#define SYNC_US 3000

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

/* No other thread or process writes or notes anything until leave(). */
static void enter(void) {
  pthread_mutex_lock(&lock);
  flock(journal(), LOCK_EX);
}

static void leave(void) {
  static int left = -1;
  if (left < 0) left = atoi(getenv("POWER_KILL"));
  if (left > 0 && --left == 0) kill(getpid(), SIGKILL);
  flock(journal(), LOCK_UN);
  pthread_mutex_unlock(&lock);
}

/* What the descriptor is of: W for the store, A for the acknowledgements, 0 for anything else. */
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

static void note(char kind, const struct iovec *parts, int count, int64_t offset, int64_t length) {
  int64_t numbers[2] = {offset, length};
  int64_t left = length;
  raw(journal(), &kind, 1);
  raw(journal(), numbers, sizeof numbers);
  for (int n = 0; n < count && left > 0; n++) {
    int64_t part = (int64_t)parts[n].iov_len < left ? (int64_t)parts[n].iov_len : left;
    raw(journal(), parts[n].iov_base, part);
    left -= part;
  }
}

#define REAL(name) \
  static __typeof__(&name) real; \
  if (!real) real = dlsym(RTLD_NEXT, #name)
#define NOTED(fd, parts, count, offset, call) \
  char kind = kind_of(fd); \
  ssize_t done; \
  if (!kind) return call; \
  enter(); \
  done = call; \
  if (done > 0) note(kind, parts, count, kind == 'A' ? 0 : offset, done); \
  leave(); \
  return done

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) {
  struct iovec part = {(void *)bytes, length};
  REAL(pwrite);
  NOTED(fd, &part, 1, offset, real(fd, bytes, length, offset));
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t offset) {
  struct iovec part = {(void *)bytes, length};
  REAL(pwrite64);
  NOTED(fd, &part, 1, offset, real(fd, bytes, length, offset));
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
  REAL(pwritev);
  NOTED(fd, parts, count, offset, real(fd, parts, count, offset));
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t offset) {
  REAL(pwritev64);
  NOTED(fd, parts, count, offset, real(fd, parts, count, offset));
}

/* Without an offset the file's own position counts, which has moved on by now. */
ssize_t write(int fd, const void *bytes, size_t length) {
  struct iovec part = {(void *)bytes, length};
  NOTED(fd, &part, 1, lseek(fd, 0, SEEK_CUR) - done, raw(fd, bytes, length));
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
  REAL(writev);
  NOTED(fd, parts, count, lseek(fd, 0, SEEK_CUR) - done, real(fd, parts, count));
}

/* It is about what was written before it began. */
static int synced(int fd, int (*real)(int)) {
  static int64_t count;
  int64_t number;
  int failed;
  if (kind_of(fd) != 'W') return real(fd);
  enter();
  number = ((int64_t)getpid() << 32) + count++;
  note('B', NULL, 0, number, 0);
  leave();
  /* As long as that other processes write meanwhile. */
  usleep(SYNC_US);
  failed = real(fd);
  enter();
  if (!failed) note('S', NULL, 0, number, 0);
  leave();
  return failed;
}

int fdatasync(int fd) {
  REAL(fdatasync);
  return synced(fd, real);
}

int fsync(int fd) {
  REAL(fsync);
  return synced(fd, real);
}
