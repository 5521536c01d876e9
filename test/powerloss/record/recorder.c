/*
 * Preloaded into a process (LD_PRELOAD), this library records each change that the process makes below one folder, each
 * flush, and all that it sends on sockets, in the order in which they happened. `trace.ts` reads the records.
 *
 * A change is made and recorded under one lock, so the order of the records is the order of the changes. A flush has two
 * records: it covers only the changes before the first, and they are on disk only at the second. What is sent is recorded
 * before it is sent: whatever a peer knows is behind a record.
 *
 * Nothing is really flushed. A flush takes POWERLOSS_FLUSH_US microseconds instead, so that there is time between a change
 * and its flush on every machine. A file opened with O_DSYNC is opened without it, and each write is followed by a flush of its
 * range, which is what O_DSYNC promises.
 *
 * Environment: POWERLOSS_ROOT, the folder, without links or "..". Absent: nothing is recorded, and flushes take no time.
 * POWERLOSS_TRACE, the file of records, outside of it. POWERLOSS_FAIL_FLUSH, number of the flush of a file that fails with EIO.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))real(#name))
/* The same function under the name that programs with 64-bit offsets call. */
#define ALSO(name, other) extern __typeof__(name) other __attribute__((alias(#name)))

enum { FDS = 65536, TRACKED = 1, SYNCED = 2 };

struct header {
  uint32_t length; /* with this header */
  char kind;
  uint8_t flags;
  uint16_t unused;
  uint64_t inode, a, b;
  uint64_t id; /* the same in both records of a flush */
};

static char root[PATH_MAX];
static size_t root_length;
static int trace = -1;
static useconds_t flush_time;
static uint64_t flushes, failing_flush;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* By descriptor. Read and written without the lock: a child between fork and exec must not wait for a lock. */
static volatile uint8_t descriptors[FDS];
/* The file that it was opened for: libuv closes with a system call of its own, and then the number is another file's. */
static volatile uint64_t inodes[FDS];

static void *real(const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  if (!found) abort();
  return found;
}

__attribute__((constructor)) static void begin(void) {
  const char *folder = getenv("POWERLOSS_ROOT"), *file = getenv("POWERLOSS_TRACE");
  if (!folder || !file) return;
  const char *time = getenv("POWERLOSS_FLUSH_US"), *failing = getenv("POWERLOSS_FAIL_FLUSH");
  flush_time = time ? atoi(time) : 0;
  failing_flush = failing ? atoll(failing) : 0;
  int fd = REAL(open)(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) abort();
  /* Out of the way of programs that close all low descriptors. */
  trace = REAL(fcntl)(fd, F_DUPFD_CLOEXEC, 200);
  REAL(close)(fd);
  if (trace < 0) abort();
  snprintf(root, sizeof root, "%s", folder);
  root_length = strlen(root);
}

/* One write, so that records of several processes do not mix. */
static void record_as(uint64_t id, char kind, uint8_t flags, uint64_t inode, uint64_t a, uint64_t b, const struct iovec *parts,
                      int count) {
  struct iovec all[IOV_MAX];
  size_t length = sizeof(struct header);
  if (count > IOV_MAX - 1) abort();
  for (int i = 0; i < count; i++) {
    all[i + 1] = parts[i];
    length += parts[i].iov_len;
  }
  struct header header = {(uint32_t)length, kind, flags, 0, inode, a, b, id};
  all[0] = (struct iovec){&header, sizeof header};
  int error = errno;
  if (REAL(writev)(trace, all, count + 1) != (ssize_t)length) abort();
  errno = error;
}

static void record(char kind, uint8_t flags, uint64_t inode, uint64_t a, uint64_t b, const struct iovec *parts, int count) {
  record_as(0, kind, flags, inode, a, b, parts, count);
}

static void record_text(char kind, uint64_t inode, const char *text, const char *more) {
  struct iovec parts[2] = {{(void *)text, strlen(text) + 1}, {(void *)more, more ? strlen(more) + 1 : 0}};
  record(kind, 0, inode, 0, 0, parts, more ? 2 : 1);
}

/* The whole path. @returns whether it is the folder that is recorded, or inside of it */
static int is_inside(int folder, const char *path, char *whole) {
  if (trace < 0) return 0;
  int error = errno;
  if (path[0] == '/') {
    snprintf(whole, PATH_MAX, "%s", path);
  } else {
    char base[PATH_MAX];
    if (folder == AT_FDCWD) {
      if (!getcwd(base, sizeof base)) return 0;
    } else {
      char link[64];
      snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
      ssize_t length = readlink(link, base, sizeof base - 1);
      if (length < 0) return errno = error, 0;
      base[length] = 0;
    }
    if (snprintf(whole, PATH_MAX, "%s/%s", base, path) >= PATH_MAX) return errno = error, 0;
  }
  errno = error;
  for (size_t end = strlen(whole); end > 1 && whole[end - 1] == '/';) whole[--end] = 0;
  return !strncmp(whole, root, root_length) && (!whole[root_length] || whole[root_length] == '/');
}

static uint64_t inode_at(int folder, const char *path) {
  struct stat found;
  int error = errno;
  int missing = fstatat(folder, path, &found, AT_SYMLINK_NOFOLLOW);
  errno = error;
  return missing ? 0 : found.st_ino;
}

static uint64_t inode_of(int fd) {
  struct stat found;
  int error = errno;
  if (fstat(fd, &found)) abort();
  errno = error;
  return found.st_ino;
}

static int is_tracked(int fd) {
  if (trace < 0 || fd < 0 || fd >= FDS || !(descriptors[fd] & TRACKED)) return 0;
  struct stat found;
  int error = errno;
  int is_same = !fstat(fd, &found) && (S_ISREG(found.st_mode) || S_ISDIR(found.st_mode)) && found.st_ino == inodes[fd];
  errno = error;
  return is_same;
}
static void mark(int fd, uint8_t as) {
  if (fd < 0 || fd >= FDS) return;
  if (as) inodes[fd] = inode_of(fd);
  descriptors[fd] = as;
}

static int is_socket(int fd) {
  struct stat found;
  int error = errno;
  int yes = trace >= 0 && fd >= 0 && !fstat(fd, &found) && S_ISSOCK(found.st_mode);
  errno = error;
  return yes;
}

/* ---- opening and closing ---- */

static int open_at(int folder, const char *path, int flags, mode_t mode) {
  char whole[PATH_MAX];
  if (!is_inside(folder, path, whole)) {
    int fd = REAL(openat)(folder, path, flags, mode);
    mark(fd, 0);
    return fd;
  }
  int is_synced = (flags & (O_DSYNC | O_SYNC)) != 0;
  pthread_mutex_lock(&lock);
  uint64_t before = inode_at(folder, path);
  int fd = REAL(openat)(folder, path, flags & ~(O_DSYNC | O_SYNC), mode);
  if (fd >= 0) {
    mark(fd, TRACKED | (is_synced ? SYNCED : 0));
    if (flags & O_CREAT && !before) record_text('C', inode_of(fd), whole, NULL);
    if (flags & O_TRUNC && before) record('T', 0, inode_of(fd), 0, 0, NULL, 0);
    if ((flags & O_TMPFILE) == O_TMPFILE) record_text('X', 0, "O_TMPFILE is not recorded", NULL);
  }
  pthread_mutex_unlock(&lock);
  return fd;
}

static mode_t mode_of(int flags, va_list list) { return flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, mode_t) : 0; }

int open(const char *path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  mode_t mode = mode_of(flags, list);
  va_end(list);
  return open_at(AT_FDCWD, path, flags, mode);
}
ALSO(open, open64);
int openat(int folder, const char *path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  mode_t mode = mode_of(flags, list);
  va_end(list);
  return open_at(folder, path, flags, mode);
}
ALSO(openat, openat64);
int __open_2(const char *path, int flags) { return open_at(AT_FDCWD, path, flags, 0); }
ALSO(__open_2, __open64_2);
int __openat_2(int folder, const char *path, int flags) { return open_at(folder, path, flags, 0); }
ALSO(__openat_2, __openat64_2);
int creat(const char *path, mode_t mode) { return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
ALSO(creat, creat64);

int close(int fd) {
  mark(fd, 0);
  return REAL(close)(fd);
}

static int copied(int from, int to) {
  if (to >= 0 && from >= 0 && from < FDS) mark(to, descriptors[from]);
  return to;
}
int dup(int fd) { return copied(fd, REAL(dup)(fd)); }
int dup2(int fd, int to) { return copied(fd, REAL(dup2)(fd, to)); }
int dup3(int fd, int to, int flags) { return copied(fd, REAL(dup3)(fd, to, flags)); }
int fcntl(int fd, int command, ...) {
  va_list list;
  va_start(list, command);
  void *argument = va_arg(list, void *);
  va_end(list);
  int result = REAL(fcntl)(fd, command, argument);
  return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? copied(fd, result) : result;
}
ALSO(fcntl, fcntl64);

/* ---- flushes ---- */

static int flush(int fd, int is_range, uint64_t from, uint64_t length) {
  if (!is_tracked(fd)) return 0;
  uint64_t inode = inode_of(fd);
  pthread_mutex_lock(&lock);
  uint64_t number = ++flushes, id = (uint64_t)getpid() << 32 | number;
  record_as(id, 'F', is_range, inode, from, length, NULL, 0);
  pthread_mutex_unlock(&lock);
  usleep(flush_time);
  struct stat found;
  if (number >= failing_flush && failing_flush && !is_range && !fstat(fd, &found) && S_ISREG(found.st_mode)) {
    failing_flush = 0;
    return errno = EIO, -1;
  }
  pthread_mutex_lock(&lock);
  record_as(id, 'G', is_range, inode, from, length, NULL, 0);
  pthread_mutex_unlock(&lock);
  return 0;
}
int fsync(int fd) { return flush(fd, 0, 0, 0); }
int fdatasync(int fd) { return flush(fd, 0, 0, 0); }
/* These promise nothing, or are not used: whoever relies on them is not seen as having flushed. */
int msync(void *start, size_t length, int flags) {
  (void)start, (void)length, (void)flags;
  return 0;
}
void sync(void) {}
int syncfs(int fd) {
  (void)fd;
  return 0;
}

/* ---- writes ---- */

static ssize_t finished(int fd, ssize_t written, const struct iovec *parts, int count, off_t at) {
  if (written > 0) {
    struct iovec done[IOV_MAX];
    size_t left = written;
    int used = 0;
    for (int i = 0; i < count && left && used < IOV_MAX - 1; i++) {
      done[used] = parts[i];
      if (done[used].iov_len > left) done[used].iov_len = left;
      left -= done[used++].iov_len;
    }
    record('W', 0, inode_of(fd), at, written, done, used);
  }
  pthread_mutex_unlock(&lock);
  if (written > 0 && descriptors[fd] & SYNCED && flush(fd, 1, at, written)) return -1;
  return written;
}

/* Where a write without an offset goes. */
static off_t place_of(int fd) {
  struct stat found;
  if (REAL(fcntl)(fd, F_GETFL) & O_APPEND && !fstat(fd, &found)) return found.st_size;
  return lseek(fd, 0, SEEK_CUR);
}

static void sent(int fd, const struct iovec *parts, int count) {
  if (!is_socket(fd)) return;
  pthread_mutex_lock(&lock);
  record('S', 0, 0, fd, 0, parts, count);
  pthread_mutex_unlock(&lock);
}

ssize_t write(int fd, const void *bytes, size_t length) {
  struct iovec part = {(void *)bytes, length};
  if (!is_tracked(fd)) {
    sent(fd, &part, 1);
    return REAL(write)(fd, bytes, length);
  }
  pthread_mutex_lock(&lock);
  off_t at = place_of(fd);
  return finished(fd, REAL(write)(fd, bytes, length), &part, 1, at);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
  if (!is_tracked(fd)) {
    sent(fd, parts, count);
    return REAL(writev)(fd, parts, count);
  }
  pthread_mutex_lock(&lock);
  off_t at = place_of(fd);
  return finished(fd, REAL(writev)(fd, parts, count), parts, count, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) {
  if (!is_tracked(fd)) return REAL(pwrite)(fd, bytes, length, at);
  struct iovec part = {(void *)bytes, length};
  pthread_mutex_lock(&lock);
  return finished(fd, REAL(pwrite)(fd, bytes, length, at), &part, 1, at);
}
ALSO(pwrite, pwrite64);

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) {
  if (!is_tracked(fd)) return REAL(pwritev)(fd, parts, count, at);
  pthread_mutex_lock(&lock);
  return finished(fd, REAL(pwritev)(fd, parts, count, at), parts, count, at);
}
ALSO(pwritev, pwritev64);

ssize_t send(int fd, const void *bytes, size_t length, int flags) {
  struct iovec part = {(void *)bytes, length};
  sent(fd, &part, 1);
  return REAL(send)(fd, bytes, length, flags);
}
ssize_t sendto(int fd, const void *bytes, size_t length, int flags, const struct sockaddr *to, socklen_t size) {
  struct iovec part = {(void *)bytes, length};
  sent(fd, &part, 1);
  return REAL(sendto)(fd, bytes, length, flags, to, size);
}
ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
  sent(fd, message->msg_iov, message->msg_iovlen);
  return REAL(sendmsg)(fd, message, flags);
}

/* ---- lengths ---- */

int ftruncate(int fd, off_t length) {
  if (!is_tracked(fd)) return REAL(ftruncate)(fd, length);
  pthread_mutex_lock(&lock);
  int result = REAL(ftruncate)(fd, length);
  if (!result) record('T', 0, inode_of(fd), length, 0, NULL, 0);
  pthread_mutex_unlock(&lock);
  return result;
}
ALSO(ftruncate, ftruncate64);
int truncate(const char *path, off_t length) {
  char whole[PATH_MAX];
  if (!is_inside(AT_FDCWD, path, whole)) return REAL(truncate)(path, length);
  pthread_mutex_lock(&lock);
  int result = REAL(truncate)(path, length);
  if (!result) record('T', 0, inode_at(AT_FDCWD, path), length, 0, NULL, 0);
  pthread_mutex_unlock(&lock);
  return result;
}
ALSO(truncate, truncate64);

/* ---- names ---- */

#define CHANGE(kind, inode, call, text, more)             \
  pthread_mutex_lock(&lock);                              \
  uint64_t changed = (inode);                             \
  int result = (call);                                    \
  if (!result) record_text(kind, changed, text, more);    \
  pthread_mutex_unlock(&lock);                            \
  return result

int renameat2(int from, const char *path, int to, const char *new_path, unsigned flags) {
  char old[PATH_MAX], new[PATH_MAX];
  int is_from = is_inside(from, path, old), is_to = is_inside(to, new_path, new);
  if (!is_from && !is_to) return REAL(renameat2)(from, path, to, new_path, flags);
  if (is_from != is_to || flags & ~RENAME_NOREPLACE) record_text('X', 0, "a rename of another kind is not recorded", NULL);
  CHANGE('R', inode_at(from, path), REAL(renameat2)(from, path, to, new_path, flags), old, new);
}
int renameat(int from, const char *path, int to, const char *new_path) { return renameat2(from, path, to, new_path, 0); }
int rename(const char *path, const char *new_path) { return renameat2(AT_FDCWD, path, AT_FDCWD, new_path, 0); }

int linkat(int from, const char *path, int to, const char *new_path, int flags) {
  char old[PATH_MAX], new[PATH_MAX];
  if (!is_inside(to, new_path, new)) return REAL(linkat)(from, path, to, new_path, flags);
  if (!is_inside(from, path, old)) record_text('X', 0, "a link to a file outside is not recorded", NULL);
  CHANGE('L', inode_at(from, path), REAL(linkat)(from, path, to, new_path, flags), old, new);
}
int link(const char *path, const char *new_path) { return linkat(AT_FDCWD, path, AT_FDCWD, new_path, 0); }
int symlinkat(const char *target, int to, const char *path) {
  char whole[PATH_MAX];
  if (is_inside(to, path, whole)) record_text('X', 0, "symbolic links are not recorded", NULL);
  return REAL(symlinkat)(target, to, path);
}
int symlink(const char *target, const char *path) { return symlinkat(target, AT_FDCWD, path); }

int unlinkat(int folder, const char *path, int flags) {
  char whole[PATH_MAX];
  if (!is_inside(folder, path, whole)) return REAL(unlinkat)(folder, path, flags);
  CHANGE('U', inode_at(folder, path), REAL(unlinkat)(folder, path, flags), whole, NULL);
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char *path) { return unlink(path) && errno == EISDIR ? rmdir(path) : 0; }

int mkdirat(int folder, const char *path, mode_t mode) {
  char whole[PATH_MAX];
  if (!is_inside(folder, path, whole)) return REAL(mkdirat)(folder, path, mode);
  pthread_mutex_lock(&lock);
  int result = REAL(mkdirat)(folder, path, mode);
  if (!result) record_text('K', inode_at(folder, path), whole, NULL);
  pthread_mutex_unlock(&lock);
  return result;
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

/* ---- gaps: changes that this library cannot see are at least reported ---- */

#define GAP(fd, name) \
  if (is_tracked(fd)) record_text('X', inode_of(fd), name " is not recorded", NULL)

void *mmap(void *start, size_t length, int protection, int flags, int fd, off_t at) {
  if (is_tracked(fd) && protection & PROT_WRITE && (flags & MAP_TYPE) != MAP_PRIVATE) record('M', 0, inode_of(fd), 0, 0, NULL, 0);
  return REAL(mmap)(start, length, protection, flags, fd, at);
}
ALSO(mmap, mmap64);
int fallocate(int fd, int mode, off_t from, off_t length) {
  GAP(fd, "fallocate");
  return REAL(fallocate)(fd, mode, from, length);
}
ALSO(fallocate, fallocate64);
int posix_fallocate(int fd, off_t from, off_t length) {
  GAP(fd, "posix_fallocate");
  return REAL(posix_fallocate)(fd, from, length);
}
ALSO(posix_fallocate, posix_fallocate64);
ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t at, int flags) {
  GAP(fd, "pwritev2");
  return REAL(pwritev2)(fd, parts, count, at, flags);
}
ALSO(pwritev2, pwritev64v2);
ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *to_at, size_t length, unsigned flags) {
  GAP(to, "copy_file_range");
  return REAL(copy_file_range)(from, at, to, to_at, length, flags);
}
ssize_t sendfile(int to, int from, off_t *at, size_t length) {
  GAP(to, "sendfile");
  return REAL(sendfile)(to, from, at, length);
}
ALSO(sendfile, sendfile64);
FILE *fopen(const char *path, const char *mode) {
  char whole[PATH_MAX];
  if (mode[0] != 'r' && is_inside(AT_FDCWD, path, whole)) record_text('X', 0, "fopen is not recorded", NULL);
  return REAL(fopen)(path, mode);
}
ALSO(fopen, fopen64);
