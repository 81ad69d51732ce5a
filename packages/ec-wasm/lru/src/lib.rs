//! Replaces the crate `lru` below reed-solomon-erasure, which keeps inverted matrices in it. `solve` inverts one matrix
//! and drops the cache, so nothing would read a hash map, and it would be a quarter of the WebAssembly.

#![no_std]

/// A cache of one entry: the one that was put last.
#[derive(Debug)]
pub struct LruCache<K, V> {
    entry: Option<(K, V)>,
}

impl<K: Eq, V> LruCache<K, V> {
    /// An empty cache. It has room for one entry, whatever the capacity.
    pub fn new(_capacity: usize) -> Self {
        LruCache { entry: None }
    }

    /// The value of `key`, if its entry is the one that was put last.
    pub fn get<Q: ?Sized + Eq>(&mut self, key: &Q) -> Option<&V>
    where
        K: core::borrow::Borrow<Q>,
    {
        self.entry.as_ref().filter(|(kept, _)| kept.borrow() == key).map(|(_, value)| value)
    }

    /// Keeps `value` in place of what was kept. Returns the earlier value of the same key.
    pub fn put(&mut self, key: K, value: V) -> Option<V> {
        let (kept, earlier) = self.entry.replace((key, value))?;
        (self.entry.as_ref().is_some_and(|(key, _)| *key == kept)).then_some(earlier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_that_was_put_last_is_found_and_no_other() {
        let mut cache = LruCache::new(100);
        assert_eq!(cache.get(&1), None);
        assert_eq!(cache.put(1, 'a'), None);
        assert_eq!(cache.get(&1), Some(&'a'));
        assert_eq!(cache.put(2, 'b'), None);
        assert_eq!(cache.get(&1), None);
        assert_eq!(cache.put(2, 'c'), Some('b'));
        assert_eq!(cache.get(&2), Some(&'c'));
    }
}
