/** A condition for texts that hold this one, in either case of letters. No index serves it. */
export function holding(text: string): { $regex: string; $options: 'i' } {
  return { $regex: text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'), $options: 'i' };
}
