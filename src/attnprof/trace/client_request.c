/* Tells callgrind when to start and stop counting.
 *
 * Valgrind recognises a sequence of instructions that does nothing on a real processor: four rotations of one register
 * that add up to whole turns, then a register exchanged with itself (see "The Client Request mechanism" in Valgrind's
 * manual). Request numbers are 'C' 'T' in the upper bytes plus 1 (zero statistics), 4 (start), 5 (stop).
 */
static void request(unsigned long number) {
    volatile unsigned long arguments[6] = {number, 0, 0, 0, 0, 0};
    unsigned long result = 0;
#if defined(__x86_64__)
    __asm__ volatile(
        "rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\txchgq %%rbx, %%rbx"
        : "=d"(result)
        : "a"(arguments), "0"(result)
        : "cc", "memory");
#elif defined(__aarch64__)
    __asm__ volatile(
        "mov x3, %1\n\tmov x4, %2\n\tror x12, x12, #3\n\tror x12, x12, #13\n\tror x12, x12, #51\n\t"
        "ror x12, x12, #61\n\torr x10, x10, x10\n\tmov %0, x3"
        : "=r"(result)
        : "r"(result), "r"(arguments)
        : "cc", "memory", "x3", "x4");
#else
#error "client requests are written for x86-64 and AArch64"
#endif
    (void)result;
}

void counting_starts(void) {
    request(0x43540001UL);
    request(0x43540004UL);
}

void counting_stops(void) { request(0x43540005UL); }
