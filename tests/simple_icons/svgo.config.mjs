// The size of a path in a 24th of a logo's side: two decimals are 0.006 px on a badge.
export default { floatPrecision: Number(process.env.DECIMALS), plugins: ["preset-default"] };
