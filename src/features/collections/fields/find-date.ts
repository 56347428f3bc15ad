const DATE = /^(\d{4})-(\d{2})-(\d{2})(?:T(\d{2}):(\d{2}):(\d{2})(\.\d+)?(Z|[+-]\d{2}:\d{2}))?$/;
const DAYS_IN_MONTH = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/**
 * The moment that an RFC 3339 date-time (with offset) or a `YYYY-MM-DD` date (midnight UTC) names, or null for any
 * other text and for days that no calendar has. Fractions are cut to milliseconds; years outside 0000-9999 after the
 * offset are refused, since they could not be answered in the same form.
 */
export function findDate(text: string): Date | null {
  const match = DATE.exec(text.length > 64 ? '' : text.toUpperCase());
  if (!match) return null;
  const [, year, month, day, hour, minute, second, fraction, offset] = match;
  if (!isCalendarDay(Number(year), Number(month), Number(day))) return null;
  if (hour === undefined) return new Date(`${year}-${month}-${day}T00:00:00Z`);
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return null;
  if (offset !== 'Z' && (Number(offset!.slice(1, 3)) > 23 || Number(offset!.slice(4)) > 59)) return null;
  const milliseconds = (fraction ?? '.').slice(1, 4).padEnd(3, '0');
  const date = new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}.${milliseconds}${offset}`);
  return date.getUTCFullYear() >= 0 && date.getUTCFullYear() <= 9999 ? date : null;
}

function isCalendarDay(year: number, month: number, day: number): boolean {
  const leap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
  const days = month === 2 && leap ? 29 : DAYS_IN_MONTH[month - 1];
  return days !== undefined && day >= 1 && day <= days;
}
