//! Heap and panic of the WASM build. Only `solve` allocates (matrices of reed-solomon-erasure), and it frees them
//! before it returns. A bump pointer that returns to where it was therefore suffices: it takes a tenth of the code of a
//! general allocator, and its memory cannot fragment.

use core::alloc::{GlobalAlloc, Layout};
use core::arch::wasm32;
use core::cell::Cell;

const PAGE_BYTES: usize = 65_536;

struct Bump {
    /// First free address; 0 before the first allocation.
    next: Cell<usize>,
    live: Cell<usize>,
}

// SAFETY: a WASM instance without shared memory has one thread.
unsafe impl Sync for Bump {}

#[global_allocator]
static HEAP: Bump = Bump { next: Cell::new(0), live: Cell::new(0) };

// SAFETY: blocks are disjoint ranges of pages that this allocator grew the memory by, and stay so until `scope` has
// seen all of them freed.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if self.next.get() == 0 {
            self.next.set(wasm32::memory_size(0) * PAGE_BYTES);
        }
        let at = self.next.get().next_multiple_of(layout.align());
        let Some(end) = at.checked_add(layout.size()) else {
            return core::ptr::null_mut();
        };
        let missing = end.saturating_sub(wasm32::memory_size(0) * PAGE_BYTES);
        if missing > 0 && wasm32::memory_grow(0, missing.div_ceil(PAGE_BYTES)) == usize::MAX {
            return core::ptr::null_mut();
        }
        self.next.set(end);
        self.live.set(self.live.get() + 1);
        at as *mut u8
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {
        self.live.set(self.live.get() - 1);
    }
}

/// Runs `work` and takes back its memory, provided that it freed as many blocks as it allocated. The first run keeps
/// its memory: `next` is 0 before it, which is no address to return to.
pub fn scope<T>(work: impl FnOnce() -> T) -> T {
    let (next, live) = (HEAP.next.get(), HEAP.live.get());
    let result = work();
    if next != 0 && HEAP.live.get() == live {
        HEAP.next.set(next);
    }
    result
}

/// Messages of panics would be half of the module; a trap says enough, since the boundary checks its arguments.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    wasm32::unreachable()
}
