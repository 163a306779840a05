/* Appends the time of its exec (CLOCK_BOOTTIME, nanoseconds, 8 bytes) to the file that its first
   argument names. A static program without a C library, so that the time is close to the exec
   itself. Exit codes: 1, the file can't be opened; 2, it can't be written. */
#include <asm/unistd.h>
#include <fcntl.h>
#include <time.h>

static long call(long number, long a, long b, long c, long d) {
  long result;
#if defined(__x86_64__)
  register long fourth __asm__("r10") = d;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                   : "rcx", "r11", "memory");
#elif defined(__aarch64__)
  register long number8 __asm__("x8") = number;
  register long a0 __asm__("x0") = a, a1 __asm__("x1") = b, a2 __asm__("x2") = c,
                   a3 __asm__("x3") = d;
  __asm__ volatile("svc #0" : "+r"(a0) : "r"(number8), "r"(a1), "r"(a2), "r"(a3) : "memory");
  result = a0;
#endif
  return result;
}

__attribute__((noreturn, used)) static void main_of(const long* stack) {
  struct timespec now = {0, 0};
  call(__NR_clock_gettime, CLOCK_BOOTTIME, (long)&now, 0, 0);
  const long ns = now.tv_sec * 1000000000l + now.tv_nsec;
  const long fd =
      call(__NR_openat, AT_FDCWD, stack[0] > 1 ? stack[2] : 0, O_WRONLY | O_APPEND | O_CREAT, 0600);
  long code = fd < 0 ? 1 : 0;
  if (code == 0 && call(__NR_write, fd, (long)&ns, sizeof ns, 0) != sizeof ns) code = 2;
  for (;;) call(__NR_exit_group, code, 0, 0, 0);
}

/* The stack holds argc and argv. */
#if defined(__x86_64__)
__asm__(
    ".globl _start\n_start:\n\txor %ebp, %ebp\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall "
    "main_of\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start:\n\tmov x0, sp\n\tbl main_of\n");
#endif
