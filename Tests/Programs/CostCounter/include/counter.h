// What the calling thread has done so far.
struct larder_costs {
    long locks, allocations, calls, statements, pages;
};
struct larder_costs larder_costs_so_far(void);
void larder_count_lock(void);
// 0 where nothing is counted: a sanitizer has functions of its own, and other systems bind theirs otherwise.
int larder_counts(void);
