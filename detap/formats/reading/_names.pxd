"""Growing hash table from words to indices in order of occurrence.

Inline functions only.
"""

from libc.stdint cimport int32_t, uint8_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memset

from detap.formats.reading._numbers cimport SEED
from detap.tables._columns cimport grow


cdef struct Names:
    # Open addressing; the words are stored consecutively. Zero bytes are an empty table.
    char *text
    size_t *start       # of each word in `text`; start[count] is the end of the last
    int32_t *slots      # number + 1, or 0
    size_t room, mask   # bytes of `text`; slots - 1, or 0
    int32_t count


cdef inline void names_close(Names *names) noexcept nogil:
    free(names.text)
    free(names.start)
    free(names.slots)


cdef inline uint64_t word_hash(const char *word, size_t length) noexcept nogil:
    cdef size_t i
    cdef uint64_t mixed = <uint64_t>0xCBF29CE484222325 ^ SEED
    for i in range(length):
        mixed = (mixed ^ <uint8_t>word[i]) * <uint64_t>0x100000001B3
    return mixed ^ (mixed >> 29)


cdef inline size_t _slot(const Names *names, const char *word, size_t length) noexcept nogil:
    """Return the slot of a word, or the free one for it."""
    cdef size_t slot = word_hash(word, length) & names.mask
    cdef size_t *start
    while names.slots[slot]:
        start = names.start + names.slots[slot] - 1
        if start[1] - start[0] == length and memcmp(names.text + start[0], word, length) == 0:
            break
        slot = (slot + 1) & names.mask
    return slot


cdef inline bint _reserve(Names *names, size_t length) noexcept nogil:
    """Reserve space for one word; False when out of memory."""
    cdef size_t slots = 2 * names.mask + 2 if names.mask else 64
    cdef size_t *start
    cdef size_t room
    cdef int32_t number
    if 2 * <size_t>(names.count + 1) > names.mask:
        if not grow(<void **>&names.slots, slots, sizeof(int32_t)):
            return False
        if not grow(<void **>&names.start, slots // 2 + 1, sizeof(size_t)):
            return False
        names.mask = slots - 1
        memset(names.slots, 0, slots * sizeof(int32_t))
        names.start[0] = 0
        for number in range(names.count):
            start = names.start + number
            names.slots[_slot(names, names.text + start[0], start[1] - start[0])] = number + 1
    room = names.start[names.count] + length
    if room >= names.room:  # so that text is not NULL for an empty word
        room = 2 * room + 1024
        if not grow(<void **>&names.text, room, 1):
            return False
        names.room = room
    return True


cdef inline int32_t names_find(
    Names *names, const char *word, size_t length, bint add
) noexcept nogil:
    """Return the index of a word, added if `add`; -1 if unknown, -2 out of memory."""
    cdef size_t slot, start
    if add and not _reserve(names, length):
        return -2
    if names.mask == 0:
        return -1
    slot = _slot(names, word, length)
    if add and names.slots[slot] == 0:
        start = names.start[names.count]
        memcpy(names.text + start, word, length)
        names.count += 1
        names.start[names.count] = start + length
        names.slots[slot] = names.count
    return names.slots[slot] - 1


cdef inline list names_texts(const Names *names):
    """Return all words, as bytes."""
    cdef int32_t at
    return [names.text[names.start[at] : names.start[at + 1]] for at in range(names.count)]
