/*
 * Preloaded into the service: makes one system call of its data path fail, and writes down all of them.
 *
 * A call is known by its name, by who makes it (LMDB's addon, or Node), and by the file below the data directory that it is
 * made on. The harness says in a shared file which call fails, when, and how. If the call is not made to fail, it is passed
 * on unchanged. Descriptors are resolved by the kernel (/proc/self/fd) at every call, so no table of them can be wrong.
 *
 * It can also kill the process in place of the call, with all of its process group: the group must be its own.
 *
 * Environment: FAULTS_DATA, the data directory; FAULTS_CONTROL, the shared file; FAULTS_TRACE, a file that gets a line for
 * every call. Calls on other files are not counted and not traced.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

/* The shared file. `harness.ts` has the same layout. */
struct control {
  /* Anything is made to fail only while this is 1. The harness sets it last. */
  atomic_int armed;
  /* The call that fails, counted from 1 after `armed` was set. */
  int nth;
  /*
   * errno of the failure; 0: half of the bytes are written, at least one: no disk answers a write with nothing for ever;
   * KILLS: the process group is killed before the call, or when half of a write is done.
   */
  int error;
  /* 1: all later calls fail as well. */
  int lasts;
  atomic_int seen;
  atomic_int injected;
  int unused[10];
  /* Names of calls with blanks around them, for example " pwrite64@lmdb "; " * " is every call that writes. */
  char calls[192];
  /* Path below the data directory; "*" is every path. */
  char path[256];
};

enum { KILLS = -1 };

static struct control *control;
static char root[4096];
static size_t root_length;
static int trace = -1;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* Raw system calls only: this must not run into the functions below. */
__attribute__((constructor)) static void begin(void) {
  const char *data = getenv("FAULTS_DATA"), *shared = getenv("FAULTS_CONTROL"), *lines = getenv("FAULTS_TRACE");
  if (!data || !shared || !lines) return;
  int fd = syscall(SYS_openat, AT_FDCWD, shared, O_RDWR | O_CLOEXEC, 0);
  if (fd < 0) return;
  void *map = (void *)syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  syscall(SYS_close, fd);
  trace = syscall(SYS_openat, AT_FDCWD, lines, O_WRONLY | O_APPEND | O_CLOEXEC, 0);
  if (map == MAP_FAILED || trace < 0) return;
  root_length = strlen(data);
  memcpy(root, data, root_length + 1);
  control = map;
}

/* The path below the data directory; NULL if it is elsewhere. "." is the directory itself. */
static const char *below(const char *path) {
  if (!control || !path || strncmp(path, root, root_length)) return NULL;
  if (!path[root_length]) return ".";
  if (path[root_length] != '/') return NULL;
  path += root_length;
  while (*path == '/') path++;
  return *path ? path : ".";
}

static const char *below_fd(int fd, char *buffer) {
  if (!control || fd < 0) return NULL;
  char link[32];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, buffer, 4095);
  if (length <= 0) return NULL;
  buffer[length] = 0;
  return below(buffer);
}

static int is_write(const char *name) {
  static const char *const writes[] = {"write", "writev", "pwrite64", "pwritev64", "fsync", "fdatasync", "ftruncate64",
                                       "rename", "link", "unlink", "mkdir", "rmdir", "create", NULL};
  for (int i = 0; writes[i]; i++)
    if (!strcmp(name, writes[i])) return 1;
  return 0;
}

/* Length of the random or hashed name at the beginning of `path`: four or more hexadecimal digits between other characters. */
static size_t random_name(const char *path) {
  size_t length = strspn(path, "0123456789abcdef");
  return length >= 4 && !isalnum((unsigned char)path[length]) ? length : 0;
}

/* Names of temporary files hold a process number, or are random: every run of digits, and every such name, becomes N. */
static void unnumbered(const char *path, char *into, size_t room) {
  size_t length = 0;
  int begins = 1;
  while (*path && length + 1 < room) {
    size_t digits = begins ? random_name(path) : 0;
    if (!digits) digits = strspn(path, "0123456789");
    into[length++] = digits ? 'N' : *path;
    path += digits ? digits : 1;
    begins = !isalnum((unsigned char)path[-1]);
  }
  into[length] = 0;
}

/*
 * Who has the code at `back`. `dladdr` would look through all symbols of Node for the nearest one, at every call: a third of
 * what a command costs.
 */
static const char *owner(const void *back) {
  struct dl_find_object found;
  int is_known = !_dl_find_object((void *)back, &found);
  return is_known && strstr(found.dlfo_link_map->l_name, "lmdb") ? "lmdb" : "node";
}

static void die(void) {
  syscall(SYS_kill, 0, SIGKILL);
  for (;;) syscall(SYS_pause);
}

/*
 * Counts the call. @returns 0: pass it on; an errno: fail with it; -1: do half of it.
 * `back` is an address in the caller.
 */
static int judge(const char *name, const char *found, const void *back) {
  if (!found) return 0;
  int saved = errno;
  char path[256];
  unnumbered(found, path, sizeof path);
  const char *who = owner(back);
  char call[64], line[512];
  snprintf(call, sizeof call, " %s@%s ", name, who);
  int verdict = 0;
  if (atomic_load(&control->armed) == 1 && (!strcmp(control->path, "*") || !strcmp(control->path, path)) &&
      (strstr(control->calls, call) || (!strcmp(control->calls, " * ") && is_write(name)))) {
    int n = atomic_fetch_add(&control->seen, 1) + 1;
    if (n == control->nth || (control->lasts && n > control->nth)) {
      atomic_fetch_add(&control->injected, 1);
      verdict = control->error > 0 ? control->error : -1;
    }
  }
  int length = snprintf(line, sizeof line, "%s@%s %s%s\n", name, who, path, verdict ? " failed" : "");
  if (length > 0) syscall(SYS_write, trace, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
  if (verdict && control->error == KILLS && strcmp(name, "write")) die();
  errno = saved;
  return verdict;
}

#define BACK __builtin_return_address(0)
#define FD_VERDICT(name, fd)   \
  char buffer[4096];           \
  int verdict = judge(name, below_fd(fd, buffer), BACK);
#define FAIL(value)    \
  if (verdict > 0) {   \
    errno = verdict;   \
    return value;      \
  }

int open64(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  const char *found = below(path);
  struct stat there;
  const char *name = found && (flags & O_CREAT) && syscall(SYS_newfstatat, AT_FDCWD, path, &there, 0) ? "create" : "open";
  int verdict = judge(name, found, BACK);
  FAIL(-1)
  return REAL(open64)(path, flags, mode);
}

ssize_t read(int fd, void *bytes, size_t count) {
  FD_VERDICT("read", fd)
  FAIL(-1)
  return REAL(read)(fd, bytes, count);
}

ssize_t pread64(int fd, void *bytes, size_t count, off64_t at) {
  FD_VERDICT("pread64", fd)
  FAIL(-1)
  return REAL(pread64)(fd, bytes, count, at);
}

ssize_t write(int fd, const void *bytes, size_t count) {
  FD_VERDICT("write", fd)
  FAIL(-1)
  ssize_t written = REAL(write)(fd, bytes, verdict ? (count + 1) / 2 : count);
  if (verdict && control->error == KILLS) die();
  return written;
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
  FD_VERDICT("pwrite64", fd)
  FAIL(-1)
  return REAL(pwrite64)(fd, bytes, verdict ? (count + 1) / 2 : count, at);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
  FD_VERDICT("writev", fd)
  FAIL(-1)
  return verdict ? REAL(write)(fd, parts[0].iov_base, (parts[0].iov_len + 1) / 2) : REAL(writev)(fd, parts, count);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at) {
  FD_VERDICT("pwritev64", fd)
  FAIL(-1)
  return verdict ? REAL(pwrite64)(fd, parts[0].iov_base, (parts[0].iov_len + 1) / 2, at)
                 : REAL(pwritev64)(fd, parts, count, at);
}

int fsync(int fd) {
  FD_VERDICT("fsync", fd)
  FAIL(-1)
  return REAL(fsync)(fd);
}

int fdatasync(int fd) {
  FD_VERDICT("fdatasync", fd)
  FAIL(-1)
  return REAL(fdatasync)(fd);
}

int ftruncate64(int fd, off64_t length) {
  FD_VERDICT("ftruncate64", fd)
  FAIL(-1)
  return REAL(ftruncate64)(fd, length);
}

void *mmap64(void *address, size_t length, int protection, int flags, int fd, off64_t at) {
  FD_VERDICT("mmap64", fd)
  FAIL(MAP_FAILED)
  return REAL(mmap64)(address, length, protection, flags, fd, at);
}

int fcntl64(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void *argument = va_arg(rest, void *);
  va_end(rest);
  int is_lock = command == F_SETLK || command == F_SETLKW || command == F_GETLK;
  FD_VERDICT("lock", is_lock ? fd : -1)
  FAIL(-1)
  return REAL(fcntl64)(fd, command, argument);
}

/* Never fails; it is seen because it frees the locks of a file. */
int close(int fd) {
  char buffer[4096];
  judge("close", below_fd(fd, buffer), BACK);
  return REAL(close)(fd);
}

int rename(const char *from, const char *to) {
  int verdict = judge("rename", below(to), BACK);
  FAIL(-1)
  return REAL(rename)(from, to);
}

int link(const char *from, const char *to) {
  int verdict = judge("link", below(to), BACK);
  FAIL(-1)
  return REAL(link)(from, to);
}

#define PATH_CALL(type, name, label, parameters, arguments, failure) \
  type name parameters {                                             \
    int verdict = judge(label, below(path), BACK);                   \
    FAIL(failure)                                                    \
    return REAL(name) arguments;                                     \
  }

PATH_CALL(int, unlink, "unlink", (const char *path), (path), -1)
PATH_CALL(int, rmdir, "rmdir", (const char *path), (path), -1)
PATH_CALL(int, mkdir, "mkdir", (const char *path, mode_t mode), (path, mode), -1)
PATH_CALL(int, access, "access", (const char *path, int mode), (path, mode), -1)
PATH_CALL(int, statfs64, "statfs64", (const char *path, struct statfs64 *into), (path, into), -1)
PATH_CALL(int, stat64, "stat", (const char *path, struct stat64 *into), (path, into), -1)
PATH_CALL(DIR *, opendir, "opendir", (const char *path), (path), NULL)

int scandir64(const char *path, struct dirent64 ***into, int (*filter)(const struct dirent64 *),
              int (*compare)(const struct dirent64 **, const struct dirent64 **)) {
  int verdict = judge("scandir64", below(path), BACK);
  FAIL(-1)
  return REAL(scandir64)(path, into, filter, compare);
}

int fstatfs64(int fd, struct statfs64 *into) {
  FD_VERDICT("fstatfs64", fd)
  FAIL(-1)
  return REAL(fstatfs64)(fd, into);
}

/* Node asks for the properties of files in this way. */
long syscall(long number, ...) {
  static long (*real)(long, ...);
  if (!real) real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  va_list rest;
  va_start(rest, number);
  long a[6];
  for (int i = 0; i < 6; i++) a[i] = va_arg(rest, long);
  va_end(rest);
  if (number == SYS_statx && control) {
    char buffer[4096];
    const char *path = (const char *)a[1];
    int verdict = judge("statx", path && *path ? below(path) : below_fd((int)a[0], buffer), BACK);
    FAIL(-1)
  }
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
