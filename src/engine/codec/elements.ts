/** Thrown for bytes that are not well-formed BSON; the transports answer it as a client error. */
export class BsonFormatError extends Error {}

/** The int32 at this place. */
export function int32At(bytes: Buffer, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
}

/** The position after the value of `type` that begins at `at`. Throws BsonFormatError for an unknown type. */
export function skipValue(bytes: Buffer, type: number, at: number): number {
  let next: number;
  switch (type) {
    case 0x06:
    case 0x0a:
    case 0xff:
    case 0x7f:
      return at;
    case 0x08:
      next = at + 1;
      break;
    case 0x10:
      next = at + 4;
      break;
    case 0x01:
    case 0x09:
    case 0x11:
    case 0x12:
      next = at + 8;
      break;
    case 0x07:
      next = at + 12;
      break;
    case 0x13:
      next = at + 16;
      break;
    case 0x02:
    case 0x0d:
    case 0x0e:
      next = at + 4 + int32At(bytes, at);
      break;
    case 0x03:
    case 0x04:
    case 0x0f:
      next = at + int32At(bytes, at);
      break;
    case 0x05:
      next = at + 5 + int32At(bytes, at);
      break;
    case 0x0c:
      next = at + 16 + int32At(bytes, at);
      break;
    case 0x0b: {
      next = bytes.indexOf(0, bytes.indexOf(0, at) + 1) + 1;
      break;
    }
    default:
      throw new BsonFormatError(`unknown element type 0x${type.toString(16)}`);
  }
  if (next <= at || next >= bytes.length + 1) throw new BsonFormatError('value runs over');
  return next;
}
