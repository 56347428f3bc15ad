/** A media type that can be sent as a header, with up to four parameters such as `charset=utf-8` or `codecs="opus"`. */
export const CONTENT_TYPE =
  /^[A-Za-z0-9][\w.+-]{0,60}\/[A-Za-z0-9][\w.+-]{0,100}( ?; ?[A-Za-z][\w-]{0,30}=([\w.+:-]{1,60}|"[\w .,+:-]{1,60}")){0,4}$/;

export const UNKNOWN_TYPE = 'application/octet-stream';

export function isContentType(text: string): boolean {
  return CONTENT_TYPE.test(text);
}

const SHOWN =
  /^(image\/(png|jpeg|gif|webp|avif|apng|bmp|tiff|heic|heif|x-icon|vnd\.microsoft\.icon)|audio\/[\w.+-]+|video\/[\w.+-]+|application\/pdf|text\/plain)$/;

/**
 * True if a browser may show files of this type; all others, above all those that carry scripts (html, svg, xml), are
 * only saved (decisions.md 6).
 */
export function isShownInline(contentType: string): boolean {
  return SHOWN.test(contentType.split(';')[0]!.trim().toLowerCase());
}
