"""Growing hash table from words to indices in order of occurrence.

Inline functions only.
"""

from libc.stdint cimport int32_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy

from detap.formats.reading._numbers cimport SEED


cdef struct Names:
    # Open addressing; the words are stored consecutively.
    char *text
    size_t used, room
    size_t *start       # of each word in `text`; start[count] is the end of the last
    int32_t count, names_room
    int32_t *slots      # number + 1, or 0
    uint64_t *hashes    # of each slot's word
    size_t mask


cdef inline void names_open(Names *names) noexcept nogil:
    names.text = NULL
    names.start = NULL
    names.slots = NULL
    names.hashes = NULL
    names.used = names.room = names.mask = 0
    names.count = names.names_room = 0


cdef inline void names_close(Names *names) noexcept nogil:
    free(names.text)
    free(names.start)
    free(names.slots)
    free(names.hashes)


cdef inline uint64_t word_hash(const char *word, size_t length) noexcept nogil:
    cdef size_t i
    cdef uint64_t mixed = <uint64_t>0xCBF29CE484222325 ^ SEED
    for i in range(length):
        mixed = (mixed ^ <uint8_t>word[i]) * <uint64_t>0x100000001B3
    return mixed ^ (mixed >> 29)


cdef inline bint _names_widen(Names *names) noexcept nogil:
    """Double the slots; False when out of memory."""
    cdef size_t i, slot
    cdef size_t slots = 2 * (names.mask + 1) if names.slots != NULL else 64
    cdef int32_t *numbers = <int32_t *>malloc(slots * sizeof(int32_t))
    cdef uint64_t *hashes = <uint64_t *>malloc(slots * sizeof(uint64_t))
    if not (numbers and hashes):
        free(numbers)
        free(hashes)
        return False
    for i in range(slots):
        numbers[i] = 0
    if names.slots != NULL:
        for i in range(names.mask + 1):
            if names.slots[i]:
                slot = names.hashes[i] & (slots - 1)
                while numbers[slot]:
                    slot = (slot + 1) & (slots - 1)
                numbers[slot] = names.slots[i]
                hashes[slot] = names.hashes[i]
    free(names.slots)
    free(names.hashes)
    names.slots = numbers
    names.hashes = hashes
    names.mask = slots - 1
    return True


cdef inline bint _names_reserve(Names *names, size_t length) noexcept nogil:
    """Reserve space for one word; False when out of memory."""
    cdef void *larger
    cdef size_t room
    if names.used + length >= names.room:  # so that text is not NULL for an empty word
        room = 2 * (names.used + length) + 1024
        larger = realloc(names.text, room)
        if larger == NULL:
            return False
        names.text = <char *>larger
        names.room = room
    if names.count >= names.names_room:
        room = 2 * <size_t>names.names_room + 64
        larger = realloc(names.start, (room + 1) * sizeof(size_t))
        if larger == NULL:
            return False
        names.start = <size_t *>larger
        names.names_room = <int32_t>room
        names.start[0] = 0
    return 2 * <size_t>(names.count + 1) <= names.mask or _names_widen(names)


cdef inline int32_t names_find(
    Names *names, const char *word, size_t length, bint grow
) noexcept nogil:
    """Return the index of a word, added if `grow`; -1 if unknown, -2 out of memory."""
    cdef uint64_t mixed = word_hash(word, length)
    cdef size_t slot
    cdef int32_t number
    if grow and not _names_reserve(names, length):
        return -2
    if names.slots == NULL:
        return -1
    slot = mixed & names.mask
    while names.slots[slot]:
        number = names.slots[slot] - 1
        if (
            names.hashes[slot] == mixed
            and names.start[number + 1] - names.start[number] == length
            and memcmp(names.text + names.start[number], word, length) == 0
        ):
            return number
        slot = (slot + 1) & names.mask
    if not grow:
        return -1
    memcpy(names.text + names.used, word, length)
    names.used += length
    number = names.count
    names.count += 1
    names.start[names.count] = names.used
    names.slots[slot] = number + 1
    names.hashes[slot] = mixed
    return number


cdef inline list names_texts(const Names *names):
    """Return all words, as bytes."""
    cdef int32_t at
    return [names.text[names.start[at] : names.start[at + 1]] for at in range(names.count)]
